#include "learn/statistics.h"

#include <algorithm>

namespace pyfastenv {

void ColumnMoments(const float* samples, int64_t rows, int64_t columns, double* mean, double* m2) {
  std::fill_n(mean, columns, 0.0);
  std::fill_n(m2, columns, 0.0);
  const float* end = samples + rows * columns;
  for (const float* row = samples; row != end; row += columns) {
    for (int64_t i = 0; i < columns; ++i) mean[i] += row[i];
  }
  for (int64_t i = 0; i < columns; ++i) mean[i] /= static_cast<double>(rows);
  for (const float* row = samples; row != end; row += columns) {
    for (int64_t i = 0; i < columns; ++i) {
      const double deviation = row[i] - mean[i];
      m2[i] += deviation * deviation;
    }
  }
}

void LinearScan(const float* values, const float* decays, int64_t steps, int64_t width, float* x) {
  if (steps == 0) return;
  const int64_t last = (steps - 1) * width;
  std::copy_n(values + last, width, x + last);
  for (int64_t i = last - 1; i >= 0; --i) x[i] = values[i] + decays[i] * x[i + width];
}

}  // namespace pyfastenv
