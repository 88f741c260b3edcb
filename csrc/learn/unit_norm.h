// A batch normalisation of UnitNetworks: what it does to a batch, as one multiplication and one
// addition, and how gradients go back through it.
#pragma once

#include <vector>

#include "learn/unit_kernels.h"
#include "learn/unit_layout.h"
#include "nn/mlp.h"

namespace pyfastenv {

class UnitNormState {
 public:
  explicit UnitNormState(const UnitNorm& place);

  /// norm(y) = y * scale + shift, of each column; zero in the padding.
  const float* scale() const { return scale_.data(); }
  const float* shift() const { return shift_.data(); }
  /// dx = a * dy + b * y + c
  const float* a() const { return a_.data(); }
  const float* b() const { return b_.data(); }
  const float* c() const { return c_.data(); }

  /// Empty sums, to be added to.
  ColumnSums Sums();

  /// Sets scale and shift by the sums of the columns and of their squares; the running moments
  /// follow.
  void SetByBatch(const float* parameters, float* moments, int rows);
  /// Sets scale and shift by the running moments.
  void SetByMoments(const float* parameters, const float* moments);
  /// The way back, by the sums of the gradient behind the norm and of that times y, and the
  /// gradients of its parameters (null: not wanted).
  void SetBack(bool by_batch, int rows, float* gradients);

 private:
  void Set(const float* parameters, size_t i, double mean, double variance);

  UnitNorm place_;
  size_t size_;
  std::vector<double> plain_, weighted_;
  std::vector<double> mean_, inverse_;  // 1 / the root of the variance
  AlignedFloats scale_, shift_, a_, b_, c_;
};

}  // namespace pyfastenv
