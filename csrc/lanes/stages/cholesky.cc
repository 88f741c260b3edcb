#include "lanes/stages/cholesky.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/sized.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// N rows, or `n` if N is 0.
template <int N>
struct Sized {
  static constexpr int kCapacity = N > 0 ? N : kMaxDofs;

  static Mask Factor(Lane* L, int size) {
    const int n = N > 0 ? N : size;
    Mask low = Splat(0) > 0.0;
#pragma GCC unroll 16
    for (int j = 0; j < n; ++j) {
      Lane* row = L + j * n;
      Lane diagonal = row[j];
      if (j > 0) diagonal = diagonal - Dot(row, row, j);
      low = low | (diagonal < kMinVal);
      row[j] = Sqrt(diagonal);
      const Lane inverse = 1.0 / row[j];
#pragma GCC unroll 16
      for (int i = j + 1; i < n; ++i) {
        L[i * n + j] = (L[i * n + j] - Dot(L + i * n, row, j)) * inverse;
      }
    }
    return low;
  }

  static void Solve(Lane* r, const Lane* L, const Lane* v, int size) {
    const int n = N > 0 ? N : size;
    Lane x[kCapacity];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) {
      const Lane known = i > 0 ? v[i] - Dot(L + i * n, x, i) : v[i];
      x[i] = known / L[i * n + i];
    }
#pragma GCC unroll 16
    for (int i = n - 1; i >= 0; --i) {
      x[i] = x[i] / L[i * n + i];
#pragma GCC unroll 16
      for (int j = 0; j < i; ++j) x[j] = x[j] - L[i * n + j] * x[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) r[i] = x[i];
  }

  [[gnu::always_inline]] static Mask Column(Lane* L, Lane* x, int n, Lane sign, int k) {
    const Lane old = L[k * n + k];
    Lane squared = old * old + sign * (x[k] * x[k]);
    const Mask low = squared < kMinVal;
    squared = Select(low, Splat(kMinVal), squared);
    const Lane diagonal = Sqrt(squared);
    const Lane c = diagonal / old, inverse_c = 1.0 / c, s = x[k] / old;
    const Lane signed_s = sign * s;
    L[k * n + k] = diagonal;
#pragma GCC unroll 16
    for (int i = k + 1; i < n; ++i) {
      const Lane entry = (L[i * n + k] + signed_s * x[i]) * inverse_c;
      L[i * n + k] = entry;
      x[i] = c * x[i] - s * entry;
    }
    return low;
  }

  static Mask Update(Lane* L, Lane* x, int size, Lane sign) {
    const int n = N > 0 ? N : size;
    Mask low = Splat(0) > 0.0;
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) {
      if (Any(x[k] != 0.0)) low = low | Column(L, x, n, sign, k);
    }
    return low;
  }

  static Mask UpdateTwo(Lane* L, Lane* x, Lane x_sign, Lane* y, Lane y_sign, int size) {
    const int n = N > 0 ? N : size;
    Mask low = Splat(0) > 0.0;
    Lane x_local[kCapacity], y_local[kCapacity];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) {
      x_local[i] = x[i];
      y_local[i] = y[i];
    }
#pragma GCC unroll 17
    for (int k = 0; k <= n; ++k) {
      if (k < n) low = low | Column(L, x_local, n, x_sign, k);
      if (k > 0) low = low | Column(L, y_local, n, y_sign, k - 1);
    }
    return low;
  }

  static constexpr Cholesky kFunctions = {
      .factor = Factor, .solve = Solve, .update = Update, .update_two = UpdateTwo};
};

}  // namespace

const Cholesky& CholeskyOfSize(int n) { return FunctionsOfSize<Sized>(n); }

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
