// Matrix products of small layers over blocks of rows, and Adam, compiled for different vector
// units. Which of them runs is decided once per process.
//
// All matrices are row-major, 64-byte aligned and zero-padded: rows to kRowMultiple, columns to
// kColumnMultiple, so kernels have no remainders.
#pragma once

#include <cstddef>

#include "learn/adam_step.h"
#include "nn/mlp_kernels.h"

namespace pyfastenv {

constexpr int kRowMultiple = 8;
constexpr int kColumnMultiple = 16;

/// A layer's sizes, and those that its matrices are padded to.
struct LayerShape {
  int in, out;
  int padded_in, padded_out;
};

struct TrainKernels {
  /// y (rows, out) = activation(x (rows, in) @ w (in, out) + b), and its slope there.
  void (*forward)(const float* x, const float* w, const float* b, int rows, const LayerShape& shape,
                  Activation activation, float* y, float* slope);
  /// dx (rows, in) = (dy (rows, out) @ wt (out, in)) * slope (rows, in); no slope: null.
  void (*backward)(const float* dy, const float* wt, const float* slope, int rows,
                   const LayerShape& shape, float* dx);
  /// dw (in, out) = x^T @ dy, db (out) = column sums of dy, unless it is null; added to what is
  /// there unless `first`.
  /// Padding of dw is not written.
  void (*accumulate)(const float* x, const float* dy, int rows, const LayerShape& shape, bool first,
                     float* dw, float* db);
  /// Layer normalisation (2, out: scales, shifts) of z (rows, out), which becomes standardised, and
  /// its deviations' reciprocals; y = activation(z * scale + shift), and its slope there.
  void (*normalise)(const float* norm, int rows, const LayerShape& shape, Activation activation,
                    float* z, float* inverse, float* y, float* slope);
  /// From the gradient by z * scale + shift, or by y where its slope is given, to that by what was
  /// normalised, in place; dnorm (2, out) is added to unless `first`.
  void (*backward_norm)(const float* norm, int rows, const LayerShape& shape, const float* z,
                        const float* inverse, const float* slope, bool first, float* dy,
                        float* dnorm);
  /// Adds `count` vectors one after another; returns the sum's sum of squares. `size` is a multiple
  /// of kColumnMultiple.
  double (*reduce)(const float* const* parts, int count, size_t size, float* total);
  /// to (columns, rows) = from (rows, columns), with room for `to_stride` rows in a line of `to`;
  /// rows and columns are multiples of kColumnMultiple.
  void (*transpose)(const float* from, int rows, int columns, float* to, int to_stride);
  /// One step of `size` parameters.
  void (*adam)(const AdamStep& step, const float* grad, size_t size, float* parameters, float* mean,
               float* square);
};

/// The fastest that this processor runs.
const TrainKernels& BestTrainKernels();

}  // namespace pyfastenv
