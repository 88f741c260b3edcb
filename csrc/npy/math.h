// The elementary functions as NumPy computes them, for results equal to gymnasium's bit for bit.
//
// NumPy picks sin, cos and dot at run time (vector instructions, BLAS kernels), so the C library's
// may differ in the last bit. The bindings install NumPy's own loops at import; without Python
// (C++ tests and benchmarks) the C library's stand in. The pointers are written once, before any
// environment exists, and only read afterwards.
#pragma once

#include <math.h>

#include <cmath>
#include <cstddef>

namespace pyfastenv::npy {

struct MathTable {
  double (*sin)(double);
  double (*cos)(double);
  float (*cosf)(float);
  float (*sinf)(float);
  double (*dot)(const double* a, const double* b, int n);
};

MathTable& Math();

inline double Sin(double x) { return Math().sin(x); }
inline double Cos(double x) { return Math().cos(x); }
inline float Sin(float x) { return Math().sinf(x); }
inline float Cos(float x) { return Math().cosf(x); }

/// np.linalg.norm of a vector: the root of BLAS' dot product.
inline double Norm(const double* x, int n) { return std::sqrt(Math().dot(x, x, n)); }

/// `x ** 2` of an np.float64 scalar: pow, not x * x (they differ in the last bit now and then).
inline double Squared(double x) { return ::pow(x, 2.0); }

/// np.clip of a scalar; NaN passes through.
inline double Clip(double x, double low, double high) {
  return x < low ? low : (x > high ? high : x);
}

/// `a % b` of np.float64: the result has the sign of b.
inline double Remainder(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0.0) {
    if ((b < 0.0) != (r < 0.0)) r += b;
  } else {
    r = std::copysign(0.0, b);
  }
  return r;
}

/// np.sum of `n` values f(0) … f(n-1) of a contiguous array: NumPy's pairwise summation with eight
/// accumulators (numpy/_core/src/umath/loops_utils.h.src, pairwise_sum).
template <class T, class F>
T PairwiseSum(F f, ptrdiff_t begin, ptrdiff_t n) {
  if (n < 8) {
    T sum = T(0);
    for (ptrdiff_t i = 0; i < n; ++i) sum += f(begin + i);
    return sum;
  }
  if (n <= 128) {
    T r[8];
    for (int k = 0; k < 8; ++k) r[k] = f(begin + k);
    ptrdiff_t i = 8;
    for (; i < n - n % 8; i += 8) {
      for (int k = 0; k < 8; ++k) r[k] += f(begin + i + k);
    }
    T sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; ++i) sum += f(begin + i);
    return sum;
  }
  ptrdiff_t half = n / 2;
  half -= half % 8;
  return PairwiseSum<T>(f, begin, half) + PairwiseSum<T>(f, begin + half, n - half);
}

/// np.sum(np.square(x)).
inline double SumOfSquares(const double* x, ptrdiff_t n) {
  return PairwiseSum<double>([x](ptrdiff_t i) { return x[i] * x[i]; }, 0, n);
}

}  // namespace pyfastenv::npy
