// The numbers that the stages compute with: a Lane holds one number of each of kWidth environments.
//
// PYFASTENV_LANES (8, 4, 2 or 1) and PYFASTENV_VARIANT (a namespace of its own for everything
// compiled with one instruction set) come from the build. Arithmetic is the compiler's vector
// extension, element by element in IEEE double: an operation on a Lane has in each lane the bits
// of the scalar operation. Stages that are recorded as straight-line code are also compiled with
// another Lane, which records operations (PYFASTENV_RECORD; program/symbol_lane.h).
#pragma once

#ifdef PYFASTENV_RECORD
#include "lanes/program/symbol_lane.h"
#else

#include <math.h>
#include <stdint.h>

#if PYFASTENV_LANES > 1 && defined(__AVX2__)
#include <immintrin.h>
#endif

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

constexpr int kWidth = PYFASTENV_LANES;
constexpr unsigned kAllLanes = (1u << kWidth) - 1;

#if PYFASTENV_LANES == 1
using Lane = double;
using Mask = bool;
using Word = long long;  // an integer of each environment

inline double& At(Lane& a, int) { return a; }
inline double At(const Lane& a, int) { return a; }
inline Lane Splat(double a) { return a; }
inline Lane Select(Mask m, Lane a, Lane b) { return m ? a : b; }
inline unsigned Bits(Mask m) { return m; }
inline Mask FromBits(unsigned bits) { return (bits & 1) != 0; }
inline Lane Sqrt(Lane a) { return __builtin_sqrt(a); }
inline Lane Abs(Lane a) { return __builtin_fabs(a); }
#else
using Lane = double __attribute__((vector_size(8 * PYFASTENV_LANES)));
using Mask = long long __attribute__((vector_size(8 * PYFASTENV_LANES)));
using Word = Mask;

inline double& At(Lane& a, int lane) { return reinterpret_cast<double*>(&a)[lane]; }
inline double At(const Lane& a, int lane) { return a[lane]; }
inline Lane Splat(double a) {
#if PYFASTENV_LANES == 8 && defined(__AVX512F__)
  return (Lane)_mm512_set1_pd(a);
#elif PYFASTENV_LANES == 4 && defined(__AVX2__)
  return (Lane)_mm256_set1_pd(a);
#else
  Lane r;
  for (int l = 0; l < kWidth; ++l) r[l] = a;
  return r;
#endif
}
inline Lane Select(Mask m, Lane a, Lane b) { return m ? a : b; }
inline unsigned Bits(Mask m) {
#if PYFASTENV_LANES == 8 && defined(__AVX512DQ__)
  return _mm512_movepi64_mask((__m512i)m);
#elif PYFASTENV_LANES == 4 && defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_pd((__m256d)m));
#else
  unsigned bits = 0;
  for (int l = 0; l < kWidth; ++l) bits |= static_cast<unsigned>(m[l] & 1) << l;
  return bits;
#endif
}
inline Mask FromBits(unsigned bits) {
#if PYFASTENV_LANES == 8 && defined(__AVX512DQ__)
  return (Mask)_mm512_movm_epi64(static_cast<__mmask8>(bits));
#else
  Mask bit_of_lane;
  for (int l = 0; l < kWidth; ++l) bit_of_lane[l] = 1LL << l;
  return (bit_of_lane & static_cast<long long>(bits)) != 0;
#endif
}
inline Lane Sqrt(Lane a) {
#if PYFASTENV_LANES == 8 && defined(__AVX512F__)
  return (Lane)_mm512_maskz_sqrt_pd(0xff, (__m512d)a);  // the plain one warns in g++ 12
#elif PYFASTENV_LANES == 4 && defined(__AVX2__)
  return (Lane)_mm256_sqrt_pd((__m256d)a);
#else
  Lane r;
  for (int l = 0; l < kWidth; ++l) r[l] = __builtin_sqrt(a[l]);
  return r;
#endif
}
inline Lane Abs(Lane a) { return (Lane)((Mask)a & 0x7fffffffffffffffLL); }
#endif

/// Lanes whose integer has the bit.
inline Mask HasBit(Word word, int bit) { return (word & (1LL << bit)) != 0; }

inline bool Any(Mask m) { return Bits(m) != 0; }
#ifndef NDEBUG
/// Lanes that have met a quaternion of no length since this was cleared.
inline thread_local unsigned short_quaternions = 0;
#endif
/// Any, of a branch that programs give up: for lanes that the step leaves to MuJoCo
/// (ShortQuaternions).
inline bool AnyShort(Mask m) {
#ifndef NDEBUG
  short_quaternions |= Bits(m) & kAllLanes;
#endif
  return Any(m);
}
/// Whether signs of zeros count here.
inline bool KeepsZeros() { return true; }
/// Whether a quaternion may be the identity, and have negative zeros.
inline bool MayBeIdentity(const Lane* q) { return Any(q[0] == 1.0); }
/// a, but zero where it is a negative zero.
inline Lane PlusZero(Lane a) { return a + 0.0; }
/// a b, where b is positive; a program's proof of its zeros' signs counts on it.
inline Lane TimesPositive(Lane a, Lane b) { return a * b; }
/// The factor that makes a vector of length `norm` a unit one: 1 where it is, within mjMINVAL.
inline Lane UnitScale(Lane norm) {
  const Mask off = Abs(norm - 1.0) > 1e-15;
  return Any(off) ? Select(off, 1.0 / norm, Splat(1)) : Splat(1);
}
/// a < b ? x : y; recorded as it is.
inline Lane WhereLess(Lane a, Lane b, Lane x, Lane y) { return Select(a < b, x, y); }
/// x, which is a zero where `a` is, but never a negative one there: what changes no more than a
/// zero's sign, which programs do not keep.
inline Lane ZeroWhereNone(Lane a, Lane x) {
  const Mask none = a == 0.0;
  return Any(none) ? Select(none, Splat(0), x) : x;
}
/// a > b ? a : b and a < b ? a : b.
#if PYFASTENV_LANES == 8 && defined(__AVX512F__)
inline Lane Max(Lane a, Lane b) { return (Lane)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b); }
inline Lane Min(Lane a, Lane b) { return (Lane)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b); }
#else
inline Lane Max(Lane a, Lane b) { return Select(a > b, a, b); }
inline Lane Min(Lane a, Lane b) { return Select(a < b, a, b); }
#endif
inline Lane Clip(Lane x, Lane low, Lane high) {
  return Select(x < low, low, Select(x > high, high, x));
}
#if PYFASTENV_LANES > 1
inline Lane Clip(Lane x, double low, double high) { return Clip(x, Splat(low), Splat(high)); }
#endif

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT

#endif  // PYFASTENV_RECORD
