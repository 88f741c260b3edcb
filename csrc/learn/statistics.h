// Passes over a batch of collected steps that tensor libraries make many of.
#pragma once

#include <cstdint>

namespace pyfastenv {

/// Mean and sum of squared deviations of each column of samples (rows, columns), in float64.
void ColumnMoments(const float* samples, int64_t rows, int64_t columns, double* mean, double* m2);

/// Solves x[t] = values[t] + decays[t] * x[t + 1], where x[steps] = 0, for rows of `width`.
void LinearScan(const float* values, const float* decays, int64_t steps, int64_t width, float* x);

}  // namespace pyfastenv
