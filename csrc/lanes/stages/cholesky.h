// Dense Cholesky factors in lanes, in the order of MuJoCo 4.0.0's binary. L is kept by rows of n.
#pragma once

#include "lanes/stages/lane.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

struct Cholesky {
  /// L Lᵀ = the matrix whose lower triangle L holds, in place. Returns lanes in which it is not
  /// positive enough; MuJoCo would lower its rank.
  Mask (*factor)(Lane* L, int n);
  /// r = (L Lᵀ)⁻¹ v.
  void (*solve)(Lane* r, const Lane* L, const Lane* v, int n);
  /// L Lᵀ + sign x xᵀ, in place; where x is zero nothing changes. Returns lanes that lost rank. x
  /// is spoilt.
  Mask (*update)(Lane* L, Lane* x, int n, Lane sign);
  /// The update by x and then that by y, which follows one column behind: the same operations, but
  /// the processor can overlap the two chains of divisions.
  Mask (*update_two)(Lane* L, Lane* x, Lane x_sign, Lane* y, Lane y_sign, int n);
};

/// The functions for matrices of n rows.
const Cholesky& CholeskyOfSize(int n);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
