// Dense Cholesky factors in lanes, in the order of MuJoCo 4.0.0's binary: L by rows of n numbers.
#pragma once

#include "lanes/stages/blas.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// L Lᵀ = the matrix whose lower triangle L holds, in place. Returns lanes in which it is not
/// positive enough; MuJoCo would lower its rank.
inline Mask CholeskyFactor(Lane* L, int n) {
  Mask low = Splat(0) > 0.0;
  for (int j = 0; j < n; ++j) {
    Lane* row = L + j * n;
    Lane diagonal = row[j];
    if (j > 0) diagonal = diagonal - Dot(row, row, j);
    low = low | (diagonal < kMinVal);
    row[j] = Sqrt(diagonal);
    const Lane inverse = 1.0 / row[j];
    for (int i = j + 1; i < n; ++i) {
      L[i * n + j] = (L[i * n + j] - Dot(L + i * n, row, j)) * inverse;
    }
  }
  return low;
}

/// r = (L Lᵀ)⁻¹ v.
inline void CholeskySolve(Lane* r, const Lane* L, const Lane* v, int n) {
  for (int i = 0; i < n; ++i) {
    const Lane known = i > 0 ? v[i] - Dot(L + i * n, r, i) : v[i];
    r[i] = known / L[i * n + i];
  }
  for (int i = n - 1; i >= 0; --i) {
    r[i] = r[i] / L[i * n + i];
    for (int j = 0; j < i; ++j) r[j] = r[j] - L[i * n + j] * r[i];
  }
}

/// One column of L Lᵀ + sign x xᵀ; where x is zero nothing changes. Returns lanes that lost rank.
inline Mask CholeskyUpdateColumn(Lane* L, Lane* x, int n, Lane sign, int k) {
  const Lane old = L[k * n + k];
  Lane squared = old * old + sign * (x[k] * x[k]);
  const Mask low = squared < kMinVal;
  squared = Select(low, Splat(kMinVal), squared);
  const Lane diagonal = Sqrt(squared);
  const Lane c = diagonal / old, inverse_c = 1.0 / c, s = x[k] / old;
  const Lane signed_s = sign * s;
  L[k * n + k] = diagonal;
  for (int i = k + 1; i < n; ++i) {
    const Lane entry = (L[i * n + k] + signed_s * x[i]) * inverse_c;
    L[i * n + k] = entry;
    x[i] = c * x[i] - s * entry;
  }
  return low;
}

inline Mask CholeskyUpdate(Lane* L, Lane* x, int n, Lane sign) {
  Mask low = Splat(0) > 0.0;
  for (int k = 0; k < n; ++k) {
    if (Any(x[k] != 0.0)) low = low | CholeskyUpdateColumn(L, x, n, sign, k);
  }
  return low;
}

/// The update by x and then that by y, which follows one column behind: the same operations, but
/// the processor can overlap the two chains of divisions.
inline Mask CholeskyUpdateTwo(Lane* L, Lane* x, Lane x_sign, Lane* y, Lane y_sign, int n) {
  Mask low = Splat(0) > 0.0;
  for (int k = 0; k <= n; ++k) {
    if (k < n) low = low | CholeskyUpdateColumn(L, x, n, x_sign, k);
    if (k > 0) low = low | CholeskyUpdateColumn(L, y, n, y_sign, k - 1);
  }
  return low;
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
