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
      .sin = [](double x) { return std::sin(x); },
      .cos = [](double x) { return std::cos(x); },
      .cosf = [](float x) { return std::cos(x); },
      .sinf = [](float x) { return std::sin(x); },
      .dot = Dot,
  };
  return table;
}

}  // namespace pyfastenv::npy
