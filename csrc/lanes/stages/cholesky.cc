#include "lanes/stages/cholesky.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/sized.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

template <class V>
struct MaskOfType {
  using Type = Mask;
};

// Half of the lanes of the widest kernels, which take the processor little more than half the time.
#if PYFASTENV_LANES == 8 && defined(__AVX512VL__)
constexpr bool kHasHalves = true;
using Half = double __attribute__((vector_size(32), may_alias));
template <>
struct MaskOfType<Half> {
  using Type = long long __attribute__((vector_size(32)));
};
inline Half Max(Half a, Half b) { return (Half)_mm256_max_pd((__m256d)a, (__m256d)b); }
inline Half Sqrt(Half a) { return (Half)_mm256_sqrt_pd((__m256d)a); }
inline unsigned Bits(MaskOfType<Half>::Type m) { return _mm256_movepi64_mask((__m256i)m); }
#else
constexpr bool kHasHalves = false;
using Half = Lane;
#endif

template <class V>
using MaskOf = typename MaskOfType<V>::Type;

namespace {

// An update in the column that it has come to, in some lanes V.
template <class V>
struct Pivot {
  V old, diagonal, x;

  [[gnu::always_inline]] Pivot(V& entry, V x_k, V sign, MaskOf<V>& low) : old(entry), x(x_k) {
    const V squared = old * old + sign * (x * x);
    low = low | (squared < kMinVal);
    diagonal = entry = Sqrt(Max(V{} + kMinVal, squared));
  }
};

// What it does to the column's entries below the diagonal.
template <class V>
struct Rotation {
  V c, inverse_c, s, signed_s;

  [[gnu::always_inline]] Rotation(const Pivot<V>& p, V sign)
      : c(p.diagonal / p.old), inverse_c(1.0 / c), s(p.x / p.old), signed_s(sign * s) {}

  [[gnu::always_inline]] void Turn(V& entry, V& x) const {
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
    const Rotation<Lane> rotation(Pivot<Lane>(L[k * n + k], x[k], sign, low), sign);
#pragma GCC unroll 16
    for (int i = k + 1; i < n; ++i) rotation.Turn(L[i * n + k], x[i]);
  }

  static void UpdateOne(Lane* L, Lane* x, int size, Lane sign, Mask& low) {
    if constexpr (N == 0) return UpdateOneInStages(L, size, x, sign, low);
#pragma GCC unroll 16
    for (int k = 0; k < N; ++k) {
      if (Any(x[k] != 0.0)) Column(L, x, N, sign, k, low);
    }
  }

  // The same, n > 1, of many rows in all lanes or of any in half of them: what the next column's
  // divisions wait for comes first, and the rest of the column while they are under way.
  template <class V>
  static void UpdateOneInStages(V* L, int n, V* x, V sign, MaskOf<V>& low) {
    constexpr int kStep = sizeof(Lane) / sizeof(V);  // to the next number of the same lanes
    const int stride = kStep * n;
    for (; n > 2 && Bits(*x != 0.0) == 0; --n, x += kStep) L += stride + kStep;
    Rotation<V> rotation(Pivot<V>(L[0], x[0], sign, low), sign);
    for (; n > 1; --n) {
      V* row = L + stride;
      L = row + kStep;  // the next diagonal entry
      x += kStep;
      rotation.Turn(row[0], x[0]);
      const Pivot<V> next(L[0], x[0], sign, low);
      int i = 1;
      const auto turn_until = [&](int end) {
        for (; i < end; ++i) {
          row += stride;
          rotation.Turn(row[0], x[i * kStep]);
        }
      };
      turn_until(1 + (n - 2) / 3);
      const Rotation<V> of_next(next, sign);
      turn_until(n - 1);
      rotation = of_next;
    }
  }

  // The update by x and then that by y, which follows one column behind: the same operations, but
  // the processor can overlap the two chains of divisions.
  static void UpdateTwo(Lane* L, Lane* x, Lane* y, int size, Lane x_sign, Lane y_sign, Mask& low) {
    if constexpr (N == 0) return UpdateTwoInStages(L, size, x, y, x_sign, y_sign, low);
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

  // The same in stages.
  template <class V>
  static void UpdateTwoInStages(V* L, int n, V* x, V* y, V x_sign, V y_sign, MaskOf<V>& low) {
    constexpr int kStep = sizeof(Lane) / sizeof(V);
    const int stride = kStep * n;
    while (n > 2 && Bits((*x != 0.0) | (*y != 0.0)) == 0) {
      L += stride + kStep;
      x += kStep;
      y += kStep;
      --n;
    }
    Rotation<V> of_x(Pivot<V>(L[0], x[0], x_sign, low), x_sign);
    for (int i = 1; i < n; ++i) of_x.Turn(L[i * stride], x[i * kStep]);
    Rotation<V> of_y(Pivot<V>(L[0], y[0], y_sign, low), y_sign);
    of_x = Rotation<V>(Pivot<V>(L[stride + kStep], x[kStep], x_sign, low), x_sign);
    V* next = L + stride + kStep;  // the diagonal's entry that x has come to; y is one before it
    for (int k = 1; k + 1 < n; ++k) {
      V* row = next;
      next += stride + kStep;
      x += kStep;
      y += kStep;
      of_x.Turn(next[-kStep], x[kStep]);
      of_y.Turn(row[-kStep], y[0]);
      of_y.Turn(next[-2 * kStep], y[kStep]);
      const Pivot<V> next_x(next[0], x[kStep], x_sign, low), next_y(row[0], y[0], y_sign, low);
      row += stride;
      int i = 2;
      const auto turn_until = [&](int end) {
        for (; i < end; ++i) {
          row += stride;
          of_x.Turn(row[0], x[i * kStep]);
          of_y.Turn(row[-kStep], y[i * kStep]);
        }
      };
      turn_until(2 + (n - k - 2) / 3);
      const Rotation<V> of_next_x(next_x, x_sign), of_next_y(next_y, y_sign);
      turn_until(n - k);
      of_x = of_next_x;
      of_y = of_next_y;
    }
    of_y.Turn(next[-kStep], y[kStep]);
    Pivot<V>(next[0], y[kStep], y_sign, low);
  }

  // Updates k to end - 1 in one half of the lanes.
  static Mask UpdateHalf(Lane* L, Lane* x, const Lane* sign, int k, int end, int n, int half) {
    const auto numbers = [half](Lane* of_all) { return reinterpret_cast<Half*>(of_all) + half; };
    const auto* signs = reinterpret_cast<const Half*>(sign) + half;
    MaskOf<Half> low = Half{} > 0.0;
    for (; k + 1 < end; k += 2) {
      UpdateTwoInStages(numbers(L), n, numbers(x + k * n), numbers(x + (k + 1) * n), signs[2 * k],
                        signs[2 * k + 2], low);
    }
    if (k < end) UpdateOneInStages(numbers(L), n, numbers(x + k * n), signs[2 * k], low);
    return FromBits(Bits(low) << (half * kWidth / 2));
  }

  static Mask Update(Lane* L, Lane* x, const Lane* sign, HalfCounts count, int size) {
    const int n = N > 0 ? N : size;
    const int half = count.second > count.first ? 1 : 0;
    const int some = half == 1 ? count.first : count.second;
    const int all = half == 1 ? count.second : count.first;
    Mask low = Splat(0) > 0.0;
    int k = 0;
    const auto update_pairs = [&](int end) {
      for (; k + 1 < end; k += 2) {
        UpdateTwo(L, x + k * n, x + (k + 1) * n, n, sign[k], sign[k + 1], low);
      }
    };
    if constexpr (kHasHalves && N != 1) {
      update_pairs(some < all ? some + 1 : all);
      if (k >= some) return low | UpdateHalf(L, x, sign, k, all, n, half);
    }
    update_pairs(all);
    if (k < all) UpdateOne(L, x + k * n, n, sign[k], low);
    return low;
  }

  static constexpr Cholesky kFunctions = {.factor = Factor, .solve = Solve, .update = Update};
};

}  // namespace

bool UpdatesInHalves(int n) { return kHasHalves && n > 1; }

const Cholesky& CholeskyOfSize(int n) { return FunctionsOfSize<Sized>(n); }

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
