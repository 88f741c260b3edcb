// The Taylor series, with their leading terms in pairs of doubles, give sine and cosine to about
// 0.01 units in the last place. glibc's error is stated as below 0.52 units up to |x| = 0.855, so
// both round to the same number unless the exact value lies near the middle between two: then, and
// for larger x, the library is asked. How it computes is not assumed.
#include "lanes/stages/sine_cosine.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

void ByLibrary(unsigned lanes, Lane x, Lane& sine, Lane& cosine) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int l = __builtin_ctz(lanes);
    const double angle = At(x, l);
    At(sine, l) = sin(angle);
    At(cosine, l) = cos(angle);
  }
}

#if PYFASTENV_LANES == 8 && defined(__AVX512F__)

constexpr double kLargest = 0.85;
// Rests of less than 0.5 / 1.05 = 0.476 and 0.5 / 1.02 = 0.490 units are far enough from the
// middle: in 10⁹ values glibc 2.36 rounded none to the other side below 0.483 and 0.495.
constexpr double kDoubtfulSine = 1.05, kDoubtfulCosine = 1.02;

// An unevaluated sum, |low| <= half a unit of high.
struct Pair {
  Lane high, low;
};

// |a| >= |b|
inline Pair AddOrdered(Lane a, Lane b) {
  const Lane sum = a + b;
  return {sum, b - (sum - a)};
}

// a b, exactly
inline Pair Multiply(Lane a, Lane b) {
  const Lane product = a * b;
  return {product, (Lane)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)product)};
}

inline Pair Multiply(Pair a, Pair b) {
  const Pair product = Multiply(a.high, b.high);
  return {product.high, product.low + (a.high * b.low + a.low * b.high)};
}

// Σ c[i] u^i of seven terms
inline Lane Polynomial(const double* c, Lane u) {
  const Lane u2 = u * u;
  const Lane low = (c[0] + c[1] * u) + (c[2] + c[3] * u) * u2;
  const Lane high = (c[4] + c[5] * u) + c[6] * u2;
  return low + high * (u2 * u2);
}

// Where a sum, once rounded, may differ from what the library makes of it.
inline unsigned Doubtful(Pair r, double factor) { return Bits(r.high + r.low * factor != r.high); }

// x + x u (-1/3! + u/5! - …), u = x²
inline Pair Sine(Lane x, Pair u) {
  static constexpr double kRest[7] = {
      1 / 120.0,        -1 / 5040.0,          1 / 362880.0,         -1 / 39916800.0,
      1 / 6227020800.0, -1 / 1307674368000.0, 1 / 355687428096000.0};
  constexpr double kSixth = -1 / 6.0, kSixthLow = -9.25185853854297e-18;
  Pair factor = AddOrdered(Splat(kSixth), u.high * Polynomial(kRest, u.high));
  factor.low = factor.low + kSixthLow;
  const Pair t = Multiply(u, factor);
  const Pair product = Multiply(x, t.high);
  const Pair sum = AddOrdered(x, product.high);
  return AddOrdered(sum.high, sum.low + (product.low + x * t.low));
}

// 1 - u/2 + u² (1/4! - u/6! + …), u = x²
inline Pair Cosine(Pair u) {
  static constexpr double kRest[7] = {
      -1 / 720.0,         1 / 40320.0,          -1 / 3628800.0,         1 / 479001600.0,
      -1 / 87178291200.0, 1 / 20922789888000.0, -1 / 6402373705728000.0};
  constexpr double kTwentyFourth = 1 / 24.0, kTwentyFourthLow = 2.3129646346357427e-18;
  Pair factor = AddOrdered(Splat(kTwentyFourth), u.high * Polynomial(kRest, u.high));
  factor.low = factor.low + kTwentyFourthLow;
  const Pair t = Multiply(Multiply(u, u), factor);
  const Pair begin = AddOrdered(Splat(1), u.high * -0.5);
  const Pair sum = AddOrdered(begin.high, t.high);
  return AddOrdered(sum.high, sum.low + (begin.low + (t.low - 0.5 * u.low)));
}

#endif

}  // namespace

#if PYFASTENV_LANES == 8 && defined(__AVX512F__)

void SineCosine(bool by_series, Lane x, Lane& sine, Lane& cosine) {
  sine = cosine = x;
  if (!by_series) return ByLibrary(kAllLanes, x, sine, cosine);
  const Pair square = Multiply(x, x);
  const Pair s = Sine(x, square), c = Cosine(square);
  sine = Select(x == 0.0, x, s.high);
  cosine = c.high;
  const unsigned ask =
      Bits(!(Abs(x) <= kLargest)) | Doubtful(s, kDoubtfulSine) | Doubtful(c, kDoubtfulCosine);
  ByLibrary(ask, x, sine, cosine);
}

bool SeriesAgrees() {
  constexpr int kSteps = 1000;
  for (int k = 0; k < kSteps; ++k) {
    Lane x, sine, cosine;
    for (int l = 0; l < kWidth; ++l) {
      At(x, l) = kLargest * (k * kWidth + l + 0.5) / (kSteps * kWidth);
    }
    SineCosine(true, x, sine, cosine);
    for (int l = 0; l < kWidth; ++l) {
      if (At(sine, l) != sin(At(x, l)) || At(cosine, l) != cos(At(x, l))) return false;
    }
  }
  return true;
}

#else  // without a fused multiply-add the series are no faster than the library

void SineCosine(bool, Lane x, Lane& sine, Lane& cosine) {
  sine = cosine = x;
  ByLibrary(kAllLanes, x, sine, cosine);
}

bool SeriesAgrees() { return false; }

#endif

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
