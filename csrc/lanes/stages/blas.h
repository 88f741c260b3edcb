// Dot products and the sparse inertia matrix in lanes, in mju_dot's order: four running sums,
// joined as (s0 + s2) + (s1 + s3), and the remainder.
#pragma once

#include "lanes/stages/lane.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

[[gnu::always_inline]] inline Lane Dot(const Lane* a, const Lane* b, int n) {
  Lane r = Splat(0);
  int k = 0;
  if (n >= 4) {
    Lane s0 = a[0] * b[0], s1 = a[1] * b[1], s2 = a[2] * b[2], s3 = a[3] * b[3];
    for (k = 4; k + 4 <= n; k += 4) {
      s0 = s0 + a[k] * b[k];
      s1 = s1 + a[k + 1] * b[k + 1];
      s2 = s2 + a[k + 2] * b[k + 2];
      s3 = s3 + a[k + 3] * b[k + 3];
    }
    r = (s0 + s2) + (s1 + s3);
  }
  switch (n - k) {
    case 3:
      return r + (a[k] * b[k] + a[k + 1] * b[k + 1] + a[k + 2] * b[k + 2]);
    case 2:
      return r + (a[k] * b[k] + a[k + 1] * b[k + 1]);
    case 1:
      return r + a[k] * b[k];
    default:
      return r;
  }
}

/// The same with b's elements picked by `index`; the remainder is added one by one.
template <class T>
T DotSparse(const T* a, const T* b, const int* index, int n) {
  T r{};
  int k = 0;
  if (n >= 4) {
    T s0 = a[0] * b[index[0]], s1 = a[1] * b[index[1]];
    T s2 = a[2] * b[index[2]], s3 = a[3] * b[index[3]];
    for (k = 4; k + 4 <= n; k += 4) {
      s0 = s0 + a[k] * b[index[k]];
      s1 = s1 + a[k + 1] * b[index[k + 1]];
      s2 = s2 + a[k + 2] * b[index[k + 2]];
      s3 = s3 + a[k + 3] * b[index[k + 3]];
    }
    r = (s0 + s2) + (s1 + s3);
  }
  for (; k < n; ++k) r = r + a[k] * b[index[k]];
  return r;
}

/// to's row i += scale from's row k, where `to` has entries.
inline void AddScaledRow(const SparseRows& to, int i, Lane* values, const SparseRows& from, int k,
                         const Lane* from_values, Lane scale) {
  int a = to.rowadr[i], b = from.rowadr[k];
  const int a_end = a + to.rownnz[i], b_end = b + from.rownnz[k];
  while (a < a_end && b < b_end) {
    const int difference = to.colind[a] - from.colind[b];
    if (difference == 0) values[a] = values[a] + scale * from_values[b];
    if (difference <= 0) ++a;
    if (difference >= 0) ++b;
  }
}

/// M = Lᵀ D L in place (the matrix has the inertia's sparsity), and 1 / D.
void Factor(const Tables& t, Lane* matrix, Lane* inverse_diagonal);

/// x = (Lᵀ D L)⁻¹ x for dofs [first, first + n), which no other dof is coupled with.
void SolveFactored(const Tables& t, Lane* x, const Lane* factor, const Lane* inverse_diagonal,
                   int first, int n);

/// r = M v.
void MulInertiaMatrix(const Tables& t, Lane* r, const Lane* M, const Lane* v);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
