// Products with the rows' Jacobian for the Newton solver.
#pragma once

#include "lanes/stages/blas.h"
#include "lanes/stages/scratch.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// Rows of n dofs, `stride` apart. `dofs`: of each row, the bits of dofs, counted from `first`,
/// whose entries are not zero in all lanes.
struct Jacobian {
  const Lane* J;
  int stride, num_rows, n;
  const uint64_t* dofs;
  int first;
};

struct JacobianProducts {
  /// r = J x - minus, each row's sum in the order of mju_dot; `minus` may be null.
  void (*multiply)(const Jacobian& a, const Lane* x, const Lane* minus, Lane* r);
  /// x = Jᵀ force, over rows that are active in some lane.
  void (*transposed)(const Jacobian& a, const Lane* force, const unsigned* active, Lane* x);
  /// The lower triangle, by rows of n, of Jᵀ diag(D) J over active rows.
  void (*gram)(const Jacobian& a, const Lane* D, const unsigned* active, Lane* H);
};

/// A row times x, of n dofs, in the order of mju_dot; `dofs`: its bits, as Jacobian has them. Rows
/// of dry friction and of limits act on a single one.
inline Lane RowProduct(const Lane* row, uint64_t dofs, const Lane* x, int n) {
  if ((dofs & (dofs - 1)) != 0 || dofs == 0) return Dot(row, x, n);
  const int i = __builtin_ctzll(dofs);
  return row[i] * x[i] + 0.0;  // a sum in which others are zero
}

/// The functions for n dofs.
const JacobianProducts& JacobianProductsOfSize(int n);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
