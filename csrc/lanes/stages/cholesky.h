// Dense Cholesky factors in lanes, in the order of MuJoCo 4.0.0's binary. L is kept by rows of n.
#pragma once

#include "lanes/stages/lane.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// Whether a matrix of n rows is updated in half of the lanes where the others have no more
/// updates.
bool UpdatesInHalves(int n);

/// A number of each half of the lanes.
struct HalfCounts {
  int first, second;
};

struct Cholesky {
  /// L Lᵀ = the matrix whose lower triangle L holds, in place. Returns lanes in which it is not
  /// positive enough; MuJoCo would lower its rank.
  Mask (*factor)(Lane* L, int n);
  /// r = (L Lᵀ)⁻¹ v.
  void (*solve)(Lane* r, const Lane* L, const Lane* v, int n);
  /// L Lᵀ + Σ sign[k] x_k x_kᵀ, one after another, in place; x (rows of n) is spoilt. Where x is
  /// zero nothing changes, as it is in each half of the lanes behind its `count`. Returns lanes
  /// that lost rank.
  Mask (*update)(Lane* L, Lane* x, const Lane* sign, HalfCounts count, int n);
};

/// The functions for matrices of n rows.
const Cholesky& CholeskyOfSize(int n);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
