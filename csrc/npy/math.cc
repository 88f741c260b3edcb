#include "npy/math.h"

namespace pyfastenv::npy {

namespace {

double Dot(const double* a, const double* b, int n) {
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

MathTable& Math() {
  static MathTable table = {
      [](double x) { return std::sin(x); },
      [](double x) { return std::cos(x); },
      [](float x) { return std::cos(x); },
      [](float x) { return std::sin(x); },
      Dot,
  };
  return table;
}

}  // namespace pyfastenv::npy
