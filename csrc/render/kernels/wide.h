// Sixteen floats, ints or truth values, on every processor: one register of AVX-512, two of AVX2,
// four of SSE2 or NEON. All arithmetic is IEEE's, number by number, but Fma, and what the compiler
// makes one of a product and a sum, is rounded once on AVX2 and AVX-512 and twice elsewhere. Those
// two have the same bits: tests compare their pictures.
#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <cstdint>

#include "render/frame.h"

#ifndef PYFASTENV_VARIANT
#error "compiled for one instruction set at a time, in a namespace of its own"
#endif

#define WIDE inline __attribute__((always_inline))

namespace pyfastenv::render::PYFASTENV_VARIANT {

#if defined(__AVX512F__)
constexpr int kNative = 16;
#elif defined(__AVX2__)
constexpr int kNative = 8;
#else
constexpr int kNative = 4;
#endif
constexpr int kParts = kLanes / kNative;

typedef float NativeFloat __attribute__((vector_size(kNative * sizeof(float)), may_alias));
typedef int NativeInt __attribute__((vector_size(kNative * sizeof(int)), may_alias));

#define EACH_PART _Pragma("GCC unroll 4") for (int k = 0; k < kParts; ++k)

struct WideInt {
  NativeInt v[kParts];
  WideInt() = default;
  WIDE WideInt(int a) { EACH_PART v[k] = a - NativeInt{}; }
  WIDE int operator[](int i) const { return v[i / kNative][i % kNative]; }
};

struct Wide {
  NativeFloat v[kParts];
  Wide() = default;
  WIDE Wide(float a) { EACH_PART v[k] = a - NativeFloat{}; }
  WIDE float operator[](int i) const { return v[i / kNative][i % kNative]; }
  WIDE void Set(int i, float a) { v[i / kNative][i % kNative] = a; }
};

#define WIDE_OPERATOR(type, op)           \
  WIDE type operator op(type a, type b) { \
    EACH_PART a.v[k] = a.v[k] op b.v[k];  \
    return a;                             \
  }                                       \
  WIDE type& operator op## = (type & a, type b) { return a = a op b; }
WIDE_OPERATOR(Wide, +)
WIDE_OPERATOR(Wide, -)
WIDE_OPERATOR(Wide, *)
WIDE_OPERATOR(Wide, /)
WIDE_OPERATOR(WideInt, +)
WIDE_OPERATOR(WideInt, -)
WIDE_OPERATOR(WideInt, *)
WIDE_OPERATOR(WideInt, &)
WIDE_OPERATOR(WideInt, |)
#undef WIDE_OPERATOR

WIDE Wide operator-(Wide a) {
  EACH_PART a.v[k] = -a.v[k];
  return a;
}
WIDE WideInt operator>>(WideInt a, int n) {
  EACH_PART a.v[k] = a.v[k] >> n;
  return a;
}
WIDE WideInt operator<<(WideInt a, int n) {
  EACH_PART a.v[k] = a.v[k] << n;
  return a;
}

#if defined(__AVX512F__)

struct Mask {
  __mmask16 m;
};
#define WIDE_COMPARISON(op, code)                                      \
  WIDE Mask operator op(Wide a, Wide b) {                              \
    return {_mm512_cmp_ps_mask((__m512)a.v[0], (__m512)b.v[0], code)}; \
  }
WIDE_COMPARISON(<, _CMP_LT_OQ)
WIDE_COMPARISON(<=, _CMP_LE_OQ)
WIDE_COMPARISON(>, _CMP_GT_OQ)
WIDE_COMPARISON(>=, _CMP_GE_OQ)
#undef WIDE_COMPARISON
WIDE Mask operator==(WideInt a, WideInt b) {
  return {_mm512_cmpeq_epi32_mask((__m512i)a.v[0], (__m512i)b.v[0])};
}
WIDE Mask operator>(WideInt a, WideInt b) {
  return {_mm512_cmpgt_epi32_mask((__m512i)a.v[0], (__m512i)b.v[0])};
}
WIDE Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.m & b.m)}; }
WIDE Mask operator|(Mask a, Mask b) { return {static_cast<__mmask16>(a.m | b.m)}; }
WIDE Mask operator~(Mask a) { return {static_cast<__mmask16>(~a.m)}; }
WIDE uint32_t Bits(Mask a) { return a.m; }
WIDE Mask FromBits(uint32_t bits) { return {static_cast<__mmask16>(bits)}; }
WIDE Wide Pick(Mask m, Wide a, Wide b) {
  a.v[0] = (NativeFloat)_mm512_mask_blend_ps(m.m, (__m512)b.v[0], (__m512)a.v[0]);
  return a;
}
WIDE WideInt Pick(Mask m, WideInt a, WideInt b) {
  a.v[0] = (NativeInt)_mm512_mask_blend_epi32(m.m, (__m512i)b.v[0], (__m512i)a.v[0]);
  return a;
}

#else

struct Mask {
  NativeInt v[kParts];
};
#define WIDE_COMPARISON(type, op)         \
  WIDE Mask operator op(type a, type b) { \
    Mask m;                               \
    EACH_PART m.v[k] = a.v[k] op b.v[k];  \
    return m;                             \
  }
WIDE_COMPARISON(Wide, <)
WIDE_COMPARISON(Wide, <=)
WIDE_COMPARISON(Wide, >)
WIDE_COMPARISON(Wide, >=)
WIDE_COMPARISON(WideInt, ==)
WIDE_COMPARISON(WideInt, >)
#undef WIDE_COMPARISON
WIDE Mask operator&(Mask a, Mask b) {
  EACH_PART a.v[k] &= b.v[k];
  return a;
}
WIDE Mask operator|(Mask a, Mask b) {
  EACH_PART a.v[k] |= b.v[k];
  return a;
}
WIDE Mask operator~(Mask a) {
  EACH_PART a.v[k] = ~a.v[k];
  return a;
}
WIDE uint32_t Bits(Mask a) {
  uint32_t bits = 0;
#if defined(__AVX2__)
  EACH_PART bits |= static_cast<uint32_t>(_mm256_movemask_ps((__m256)a.v[k])) << (k * kNative);
#elif defined(__SSE2__)
  EACH_PART bits |= static_cast<uint32_t>(_mm_movemask_ps((__m128)a.v[k])) << (k * kNative);
#else
  for (int i = 0; i < kLanes; ++i) {
    bits |= (a.v[i / kNative][i % kNative] != 0 ? 1U : 0U) << i;
  }
#endif
  return bits;
}
WIDE Mask FromBits(uint32_t bits) {
  Mask m;
  for (int i = 0; i < kLanes; ++i) m.v[i / kNative][i % kNative] = (bits >> i & 1U) != 0 ? -1 : 0;
  return m;
}
WIDE Wide Pick(Mask m, Wide a, Wide b) {
  EACH_PART a.v[k] = m.v[k] ? a.v[k] : b.v[k];
  return a;
}
WIDE WideInt Pick(Mask m, WideInt a, WideInt b) {
  EACH_PART a.v[k] = m.v[k] ? a.v[k] : b.v[k];
  return a;
}

#endif

WIDE Wide Pick(Mask m, float a, float b) { return Pick(m, Wide(a), Wide(b)); }

constexpr uint32_t kAllBits = 0xffff;
WIDE bool Any(Mask a) { return Bits(a) != 0; }
WIDE Mask& operator&=(Mask& a, Mask b) { return a = a & b; }
WIDE Mask& operator|=(Mask& a, Mask b) { return a = a | b; }
WIDE Mask All() { return WideInt(0) == WideInt(0); }
WIDE Mask None() { return ~All(); }
WIDE int First(uint32_t bits) { return __builtin_ctz(bits); }

WIDE Wide Load(const float* p) {
  Wide a;
  EACH_PART a.v[k] = *reinterpret_cast<const NativeFloat*>(p + k * kNative);
  return a;
}
WIDE void Store(float* p, Wide a) {
  EACH_PART* reinterpret_cast<NativeFloat*>(p + k * kNative) = a.v[k];
}
WIDE void Store(int* p, WideInt a) {
  EACH_PART* reinterpret_cast<NativeInt*>(p + k * kNative) = a.v[k];
}

/// 0, 1, 2 ...
WIDE Wide Iota() {
  Wide a;
  for (int i = 0; i < kLanes; ++i) a.Set(i, static_cast<float>(i));
  return a;
}
/// Lanes n and following; zeros after the last.
template <int n>
WIDE Wide Shifted(Wide a) {
#if defined(__AVX512F__)
  a.v[0] = (NativeFloat)_mm512_alignr_epi32(_mm512_setzero_si512(), (__m512i)a.v[0], n);
#else
  alignas(64) float lanes[2 * kLanes] = {};
  Store(lanes, a);
  __builtin_memcpy(&a, lanes + n, sizeof a);
#endif
  return a;
}

/// a * b + c
WIDE Wide Fma(Wide a, Wide b, Wide c) {
#if defined(__AVX512F__)
  a.v[0] = (NativeFloat)_mm512_fmadd_ps((__m512)a.v[0], (__m512)b.v[0], (__m512)c.v[0]);
#elif defined(__FMA__)
  EACH_PART a.v[k] = (NativeFloat)_mm256_fmadd_ps((__m256)a.v[k], (__m256)b.v[k], (__m256)c.v[k]);
#else
  a = a * b + c;
#endif
  return a;
}
WIDE Wide Min(Wide a, Wide b) {
#if defined(__AVX512F__)
  a.v[0] = (NativeFloat)_mm512_min_ps((__m512)a.v[0], (__m512)b.v[0]);
  return a;
#else
  return Pick(a < b, a, b);
#endif
}
WIDE Wide Max(Wide a, Wide b) {
#if defined(__AVX512F__)
  a.v[0] = (NativeFloat)_mm512_max_ps((__m512)a.v[0], (__m512)b.v[0]);
  return a;
#else
  return Pick(a > b, a, b);
#endif
}
WIDE Wide Clamp(Wide a, Wide low, Wide high) { return Min(Max(a, low), high); }
WIDE Wide Abs(Wide a) {
  EACH_PART a.v[k] = (NativeFloat)((NativeInt)a.v[k] & 0x7fffffff);
  return a;
}
WIDE Wide Sqrt(Wide a) {
#if defined(__AVX512F__)
  a.v[0] = (NativeFloat)_mm512_sqrt_ps((__m512)a.v[0]);
#elif defined(__AVX2__)
  EACH_PART a.v[k] = (NativeFloat)_mm256_sqrt_ps((__m256)a.v[k]);
#elif defined(__SSE2__)
  EACH_PART a.v[k] = (NativeFloat)_mm_sqrt_ps((__m128)a.v[k]);
#else
  for (int i = 0; i < kLanes; ++i) a.Set(i, __builtin_sqrtf(a[i]));
#endif
  return a;
}
/// Towards zero; of numbers that an int holds.
WIDE WideInt Truncate(Wide a) {
  WideInt b;
  EACH_PART b.v[k] = __builtin_convertvector(a.v[k], NativeInt);
  return b;
}
WIDE Wide ToFloat(WideInt a) {
  Wide b;
  EACH_PART b.v[k] = __builtin_convertvector(a.v[k], NativeFloat);
  return b;
}
/// The largest whole number that is not above, of numbers that an int holds.
WIDE Wide Floor(Wide a) {
#if defined(__AVX512F__)
  a.v[0] =
      (NativeFloat)_mm512_roundscale_ps((__m512)a.v[0], _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  return a;
#elif defined(__AVX2__)
  EACH_PART a.v[k] = (NativeFloat)_mm256_floor_ps((__m256)a.v[k]);
  return a;
#else
  const Wide whole = ToFloat(Truncate(a));
  return Pick(whole > a, whole - 1.0F, whole);
#endif
}
WIDE WideInt Gather(const uint32_t* p, WideInt at) {
#if defined(__AVX512F__)
  at.v[0] = (NativeInt)_mm512_i32gather_epi32((__m512i)at.v[0], p, 4);
#elif defined(__AVX2__)
  EACH_PART at.v[k] =
      (NativeInt)_mm256_i32gather_epi32(reinterpret_cast<const int*>(p), (__m256i)at.v[k], 4);
#else
  for (int i = 0; i < kLanes; ++i) {
    at.v[i / kNative][i % kNative] = static_cast<int>(p[at[i]]);
  }
#endif
  return at;
}
WIDE WideInt Gather(const int* p, WideInt at) {
  return Gather(reinterpret_cast<const uint32_t*>(p), at);
}
WIDE Wide Gather(const float* p, WideInt at) {
  Wide a;
  const WideInt bits = Gather(reinterpret_cast<const uint32_t*>(p), at);
  EACH_PART a.v[k] = (NativeFloat)bits.v[k];
  return a;
}

#if defined(__SSE2__)
WIDE WideInt FromQuarters(const __m128i* q) {
  WideInt a;
#if defined(__AVX512F__)
  const __m256i low = _mm256_set_m128i(q[1], q[0]), high = _mm256_set_m128i(q[3], q[2]);
  a.v[0] = (NativeInt)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
#elif defined(__AVX2__)
  EACH_PART a.v[k] = (NativeInt)_mm256_set_m128i(q[2 * k + 1], q[2 * k]);
#else
  EACH_PART a.v[k] = (NativeInt)q[k];
#endif
  return a;
}
#endif
#if defined(__AVX512F__)
WIDE int Least(WideInt a) { return _mm512_reduce_min_epi32((__m512i)a.v[0]); }

/// Eight rows of four numbers; numbers of any of its places.
struct Window {
  __m512i low, high;
  WIDE WideInt operator[](WideInt at) const {
    at.v[0] = (NativeInt)_mm512_permutex2var_epi32(low, (__m512i)at.v[0], high);
    return at;
  }
};

WIDE Window LoadWindow(const uint32_t* p, int row) {
  __m128i rows[8];
  _Pragma("GCC unroll 8") for (int k = 0; k < 8; ++k) {
    rows[k] =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + static_cast<ptrdiff_t>(k) * row));
  }
  return {(__m512i)FromQuarters(rows).v[0], (__m512i)FromQuarters(rows + 4).v[0]};
}
#endif

/// p[at] and p[at + 1]. A gather instruction takes longer than two of these.
WIDE void LoadPairs(const uint32_t* p, WideInt at, WideInt& first, WideInt& second) {
  alignas(64) int index[kLanes];
  Store(index, at);
#if defined(__SSE2__)
  __m128i low[4], high[4];
  _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k) {
    const auto pair = [&](int i) {
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + index[4 * k + i]));
    };
    const __m128i a = _mm_unpacklo_epi32(pair(0), pair(1));
    const __m128i b = _mm_unpacklo_epi32(pair(2), pair(3));
    low[k] = _mm_unpacklo_epi64(a, b), high[k] = _mm_unpackhi_epi64(a, b);
  }
  first = FromQuarters(low), second = FromQuarters(high);
#else
  for (int i = 0; i < kLanes; ++i) {
    first.v[i / kNative][i % kNative] = static_cast<int>(p[index[i]]);
    second.v[i / kNative][i % kNative] = static_cast<int>(p[index[i] + 1]);
  }
#endif
}

using Wide3 = Vec3<Wide>;
WIDE Wide3 Widen(Float3 a) { return {a.x, a.y, a.z}; }
template <int n>
WIDE Wide3 Shifted(const Wide3& a) {
  return {Shifted<n>(a.x), Shifted<n>(a.y), Shifted<n>(a.z)};
}
WIDE Wide3 Pick(Mask m, const Wide3& a, const Wide3& b) {
  return {Pick(m, a.x, b.x), Pick(m, a.y, b.y), Pick(m, a.z, b.z)};
}
/// a * s + b
WIDE Wide3 Fma(const Wide3& a, Wide s, const Wide3& b) {
  return {Fma(a.x, s, b.x), Fma(a.y, s, b.y), Fma(a.z, s, b.z)};
}
WIDE Wide3 Clamp01(const Wide3& a) {
  return {Clamp(a.x, 0.0F, 1.0F), Clamp(a.y, 0.0F, 1.0F), Clamp(a.z, 0.0F, 1.0F)};
}
WIDE Wide3 Unit(const Wide3& a) { return a * (1.0F / Sqrt(Max(Dot(a, a), 1e-30F))); }

/// x to the power of a whole n, by squaring.
WIDE Wide Power(Wide x, int n) {
  Wide y = 1.0F;
  for (; n != 0; n >>= 1, x *= x) {
    if ((n & 1) != 0) y *= x;
  }
  return y;
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
