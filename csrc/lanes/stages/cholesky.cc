#include "lanes/stages/cholesky.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/sized.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// An update in the column that it has come to.
struct Pivot {
  Lane old, diagonal, x;

  [[gnu::always_inline]] Pivot(Lane& entry, Lane x_k, Lane sign, Mask& low) : old(entry), x(x_k) {
    const Lane squared = old * old + sign * (x * x);
    const Mask lost = squared < kMinVal;
    low = low | lost;
    diagonal = entry = Sqrt(Select(lost, Splat(kMinVal), squared));
  }
};

// What it does to the column's entries below the diagonal.
struct Rotation {
  Lane c, inverse_c, s, signed_s;

  [[gnu::always_inline]] Rotation(const Pivot& p, Lane sign)
      : c(p.diagonal / p.old), inverse_c(1.0 / c), s(p.x / p.old), signed_s(sign * s) {}

  [[gnu::always_inline]] void Turn(Lane& entry, Lane& x) const {
    entry = (entry + signed_s * x) * inverse_c;
    x = c * x - s * entry;
  }
};

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

  [[gnu::always_inline]] static void Column(Lane* L, Lane* x, int n, Lane sign, int k, Mask& low) {
    const Rotation rotation(Pivot(L[k * n + k], x[k], sign, low), sign);
#pragma GCC unroll 16
    for (int i = k + 1; i < n; ++i) rotation.Turn(L[i * n + k], x[i]);
  }

  static void UpdateOne(Lane* L, Lane* x, int size, Lane sign, Mask& low) {
    const int n = N > 0 ? N : size;
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) {
      if (Any(x[k] != 0.0)) Column(L, x, n, sign, k, low);
    }
  }

  // The update by x and then that by y, which follows one column behind: the same operations, but
  // the processor can overlap the two chains of divisions.
  static void UpdateTwo(Lane* L, Lane* x, Lane* y, int size, Lane x_sign, Lane y_sign, Mask& low) {
    if constexpr (N == 0) {
      int first = 0;
      while (first < size - 2 && !Any((x[first] != 0.0) | (y[first] != 0.0))) ++first;
      return UpdateTwoInStages(L + first * (size + 1), size, x + first, y + first, size - first,
                               x_sign, y_sign, low);
    }
    Lane x_local[kCapacity], y_local[kCapacity];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      x_local[i] = x[i];
      y_local[i] = y[i];
    }
#pragma GCC unroll 17
    for (int k = 0; k <= N; ++k) {
      if (k < N) Column(L, x_local, N, x_sign, k, low);
      if (k > 0) Column(L, y_local, N, y_sign, k - 1, low);
    }
  }

  // The same for many rows, n > 1, `stride` apart: what the next columns' divisions wait for comes
  // first, and the rest of these columns while they are under way.
  static void UpdateTwoInStages(Lane* L, int stride, Lane* x, Lane* y, int n, Lane x_sign,
                                Lane y_sign, Mask& low) {
    Rotation of_x(Pivot(L[0], x[0], x_sign, low), x_sign);
    for (int i = 1; i < n; ++i) of_x.Turn(L[i * stride], x[i]);
    Rotation of_y(Pivot(L[0], y[0], y_sign, low), y_sign);
    of_x = Rotation(Pivot(L[stride + 1], x[1], x_sign, low), x_sign);
    Lane* next = L + stride + 1;  // the diagonal's entry that x has come to; y is one before it
    for (int k = 1; k + 1 < n; ++k) {
      Lane* row = next;
      next += stride + 1;
      of_x.Turn(next[-1], x[k + 1]);
      of_y.Turn(row[-1], y[k]);
      of_y.Turn(next[-2], y[k + 1]);
      const Pivot next_x(next[0], x[k + 1], x_sign, low), next_y(row[0], y[k], y_sign, low);
      row += stride;
      int i = k + 2;
      const auto turn_until = [&](int end) {
        for (; i < end; ++i) {
          row += stride;
          of_x.Turn(row[0], x[i]);
          of_y.Turn(row[-1], y[i]);
        }
      };
      turn_until(i + (n - i) / 3);
      const Rotation of_next_x(next_x, x_sign), of_next_y(next_y, y_sign);
      turn_until(n);
      of_x = of_next_x;
      of_y = of_next_y;
    }
    of_y.Turn(next[-1], y[n - 1]);
    Pivot(next[0], y[n - 1], y_sign, low);
  }

  static Mask Update(Lane* L, Lane* x, const Lane* sign, int count, int size) {
    const int n = N > 0 ? N : size;
    Mask low = Splat(0) > 0.0;
    int k = 0;
    for (; k + 1 < count; k += 2) {
      UpdateTwo(L, x + k * n, x + (k + 1) * n, n, sign[k], sign[k + 1], low);
    }
    if (k < count) UpdateOne(L, x + k * n, n, sign[k], low);
    return low;
  }

  static constexpr Cholesky kFunctions = {.factor = Factor, .solve = Solve, .update = Update};
};

}  // namespace

const Cholesky& CholeskyOfSize(int n) { return FunctionsOfSize<Sized>(n); }

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
