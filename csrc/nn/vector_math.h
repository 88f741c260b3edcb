// Vectors of floats and the activations on them. Only for files that are compiled once per vector
// unit (see CMakeLists.txt): everything is inlined, nothing has a name outside the file.
#pragma once

#include "nn/mlp_kernels.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace pyfastenv {

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * sizeof(float)), may_alias));
typedef int IntVec __attribute__((vector_size(kLanes * sizeof(int))));

// PYFASTENV_NAME(Dense) is DenseAvx2 where PYFASTENV_VARIANT is Avx2
#define PYFASTENV_JOIN(a, b) a##b
#define PYFASTENV_EXPAND(a, b) PYFASTENV_JOIN(a, b)
#define PYFASTENV_NAME(name) PYFASTENV_EXPAND(name, PYFASTENV_VARIANT)

#define PYFASTENV_INLINE inline __attribute__((always_inline))

template <class V = Vec>
PYFASTENV_INLINE V Fill(float x) {
  return V{} + x;
}
PYFASTENV_INLINE Vec LoadVec(const float* x) { return *reinterpret_cast<const Vec*>(x); }
PYFASTENV_INLINE void StoreVec(float* x, Vec value) { *reinterpret_cast<Vec*>(x) = value; }
// of any place in memory
template <class V = Vec>
PYFASTENV_INLINE V LoadLoose(const float* x) {
  V value;
  __builtin_memcpy(&value, x, sizeof(V));
  return value;
}
template <class V>
PYFASTENV_INLINE void StoreLoose(float* x, V value) {
  __builtin_memcpy(x, &value, sizeof(V));
}

// the first `count` numbers there, and zeros
PYFASTENV_INLINE Vec LoadFirst(const float* x, int count) {
  if (count >= kLanes) return LoadLoose(x);
#ifdef __AVX512F__
  return (Vec)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1 << count) - 1), x);
#else
  Vec value = {};
  for (int lane = 0; lane < count; ++lane) value[lane] = x[lane];
  return value;
#endif
}
PYFASTENV_INLINE void StoreFirst(float* x, Vec value, int count) {
  if (count >= kLanes) return StoreLoose(x, value);
#ifdef __AVX512F__
  _mm512_mask_storeu_ps(x, static_cast<__mmask16>((1 << count) - 1), (__m512)value);
#else
  for (int lane = 0; lane < count; ++lane) x[lane] = value[lane];
#endif
}

PYFASTENV_INLINE float Sum(Vec x) {
  float sum = 0.0F;
  for (int lane = 0; lane < kLanes; ++lane) sum += x[lane];
  return sum;
}

template <class V>
PYFASTENV_INLINE V Exp(V x) {
  // exp(x) = 2^n exp(r) with |r| <= ln(2) / 2, where the Taylor series to r^6 is good to 1.2e-7
  using Integers = decltype(x < x);
  const V low = Fill<V>(-87.0F);
  const V high = Fill<V>(88.0F);
  x = x < low ? low : x;
  x = x > high ? high : x;
  const V round = Fill<V>(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  const V n = (x * 1.44269504F + round) - round;
  const V r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  V p = Fill<V>(1.0F / 720.0F);
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const Integers power = (__builtin_convertvector(n, Integers) + 127) << 23;
  return p * (V)power;  // its bits
}

// 1 / x and the square root of x >= 0, to about a unit in the last place: with AVX-512 from an
// estimate and one step of Newton's, a third of the time of a division.
#ifdef __AVX512F__
PYFASTENV_INLINE Vec Reciprocal(Vec x) {
  const Vec y = (Vec)_mm512_maskz_rcp14_ps(0xFFFF, (__m512)x);
  return y * (2.0F - x * y);
}

PYFASTENV_INLINE Vec SquareRoot(Vec x) {
  const Vec smallest = Fill(1.17549435e-38F);  // keeps the estimate finite
  const Vec y = (Vec)_mm512_maskz_rsqrt14_ps(0xFFFF, (__m512)(x < smallest ? smallest : x));
  return x * (y * (1.5F - 0.5F * x * y * y));
}
#else
PYFASTENV_INLINE Vec Reciprocal(Vec x) { return 1.0F / x; }

PYFASTENV_INLINE Vec SquareRoot(Vec x) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
  return x;
}
#endif

/// Layer normalisation: x (padded, a multiple of the vector's size) = (x - mean) / deviation of its
/// first `size` numbers, and zeros. Returns 1 / deviation.
template <class V>
PYFASTENV_INLINE float Standardise(float* x, int size, int padded) {
  constexpr int kSize = sizeof(V) / sizeof(float);
  const auto mean_of = [&](V sums) {
    float sum = 0.0F;
    for (int lane = 0; lane < kSize; ++lane) sum += sums[lane];
    return sum / static_cast<float>(size);
  };
  V sums = {};
  for (int i = 0; i < padded; i += kSize) sums += LoadLoose<V>(x + i);
  const V mean = Fill<V>(mean_of(sums));
  V squares = {};
  for (int i = 0; i < padded; i += kSize) {
    V difference = LoadLoose<V>(x + i) - mean;
    for (int lane = size > i ? size - i : 0; lane < kSize; ++lane) difference[lane] = 0.0F;
    squares += difference * difference;
    StoreLoose(x + i, difference);
  }
  const float scale = 1.0F / __builtin_sqrtf(mean_of(squares) + 1e-5F);  // as torch.nn.LayerNorm
  for (int i = 0; i < padded; i += kSize) StoreLoose(x + i, LoadLoose<V>(x + i) * scale);
  return scale;
}

struct Divide {
  template <class V>
  PYFASTENV_INLINE V operator()(V x) const {
    return 1.0F / x;
  }
};

/// tanh(x), at most 1, with a relative error of 4e-7: x times a quotient of polynomials of x²,
/// fitted so that the greatest relative error on [-8, 8] is the least, 6e-9 before rounding.
template <class V, class Invert>
PYFASTENV_INLINE V Tanh(V x, Invert invert) {
  const V most = Fill<V>(8.0F);
  x = x > most ? most : x;  // NaN passes through
  x = x < -most ? -most : x;
  const V square = x * x;
  V p = Fill<V>(1.52907665e-8F);
  p = p * square + 2.19349062e-5F;
  p = p * square + 3.57394911e-3F;
  p = p * square + 0.134464557F;
  p = p * square + 1.0F;
  V q = Fill<V>(8.54606653e-7F);
  q = q * square + 3.41519591e-4F;
  q = q * square + 2.61733156e-2F;
  q = q * square + 0.467797834F;
  q = q * square + 1.0F;
  return x * p * invert(q);
}

template <Activation kValue>
struct ActivationConstant {
  static constexpr Activation value = kValue;
};

/// Calls f with the activation as a constant's type: loops that are compiled for each.
template <class F>
PYFASTENV_INLINE void WithConstant(Activation activation, F f) {
  switch (activation) {
    case Activation::kIdentity:
      return f(ActivationConstant<Activation::kIdentity>());
    case Activation::kTanh:
      return f(ActivationConstant<Activation::kTanh>());
    case Activation::kRelu:
      return f(ActivationConstant<Activation::kRelu>());
    case Activation::kElu:
      return f(ActivationConstant<Activation::kElu>());
    case Activation::kSilu:
      return f(ActivationConstant<Activation::kSilu>());
  }
}

/// `invert` is 1 / x.
template <class V, class Invert>
PYFASTENV_INLINE V Activate(Activation activation, V x, Invert invert) {
  switch (activation) {
    case Activation::kTanh:
      return Tanh(x, invert);
    case Activation::kRelu:
      return x < 0.0F ? V{} : x;  // NaN passes through
    case Activation::kElu:
      return x > 0.0F ? x : Exp(x) - 1.0F;
    case Activation::kSilu:
      return x * invert(Exp(-x) + 1.0F);
    case Activation::kIdentity:
      break;
  }
  return x;
}

/// The derivative at x, where y = Activate(x).
PYFASTENV_INLINE Vec Slope(Activation activation, Vec x, Vec y) {
  switch (activation) {
    case Activation::kTanh:
      return 1.0F - y * y;
    case Activation::kRelu:
      return x > 0.0F ? Fill(1.0F) : Vec{};
    case Activation::kElu:
      return x > 0.0F ? Fill(1.0F) : y + 1.0F;
    case Activation::kSilu: {
      const Vec sigmoid = Reciprocal(Exp(-x) + 1.0F);
      return sigmoid + y * (1.0F - sigmoid);
    }
    case Activation::kIdentity:
      break;
  }
  return Fill(1.0F);
}

}  // namespace

}  // namespace pyfastenv
