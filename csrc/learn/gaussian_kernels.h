// Losses of Gaussian networks' outputs, and vectors that follow others, compiled for different
// vector units. Which of them runs is decided once per process.
#pragma once

#include <cstddef>

namespace pyfastenv {

struct GaussianKernels {
  /// Squashed Gaussians: outputs (rows, stride) hold means, then log-stds; see
  /// pyfastenv/nn/functional.py for the formulas. inside is 1 or 0.
  void (*squash)(const float* outputs, int stride, const float* noise, int rows, int size,
                 float log_std_min, float log_std_max, float* actions, float* spread, float* inside,
                 float* log_probs);
  /// The likelihood loss of Gaussians with bounded log-variances and its gradient; see
  /// pyfastenv/nn/functional.py (bounded_gaussian_gradients). outputs (rows, stride) and by_outputs
  /// (rows, 2 size) hold means, then raw log-variances; by_low and by_high (size) are added to.
  /// Returns the loss.
  double (*likelihood)(const float* outputs, int stride, const float* targets, int rows, int size,
                       const float* low, const float* high, float* by_outputs, float* by_low,
                       float* by_high);
  /// a += (b - a) * share
  void (*follow)(float* a, const float* b, size_t size, float share);
};

/// The fastest that this processor runs.
const GaussianKernels& BestGaussianKernels();

}  // namespace pyfastenv
