// Matrix products of small layers over blocks of rows, and Adam, compiled for different vector
// units. Which of them runs is decided once per process.
//
// All matrices are row-major, 64-byte aligned and zero-padded: rows to kRowMultiple, columns to
// kColumnMultiple, so kernels have no remainders.
#pragma once

#include <cstddef>

#include "nn/mlp_kernels.h"

namespace pyfastenv {

constexpr int kRowMultiple = 8;
constexpr int kColumnMultiple = 16;

struct AdamStep {
  float lr;  // with the bias correction of the first moment
  float beta1;
  float beta2;
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float eps;
  float grad_scale;
};

struct TrainKernels {
  /// y (rows, out) = activation(x (rows, in) @ w (in, out) + b), and its slope there.
  void (*forward)(const float* x, const float* w, const float* b, int rows, int in, int out,
                  Activation activation, float* y, float* slope);
  /// dx (rows, in) = (dy (rows, out) @ wt (out, in)) * slope (rows, in)
  void (*backward)(const float* dy, const float* wt, const float* slope, int rows, int in, int out,
                   float* dx);
  /// dw (in, out) = x^T @ dy, db (out) = column sums of dy; added to what is there unless `first`.
  void (*accumulate)(const float* x, const float* dy, int rows, int in, int out, bool first,
                     float* dw, float* db);
  /// Adds `count` vectors one after another; returns the sum's sum of squares.
  double (*reduce)(const float* const* parts, int count, size_t size, float* total);
  /// One step of `size` parameters. (Here and above a multiple of kColumnMultiple.)
  void (*adam)(const AdamStep& step, const float* grad, size_t size, float* parameters, float* mean,
               float* square);
};

/// The fastest that this processor runs.
const TrainKernels& BestTrainKernels();

}  // namespace pyfastenv
