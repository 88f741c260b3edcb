// One environment's action, in the caller's dtype.
//
// gymnasium computes with an action in the dtype it was given (a float32 control cost of float32
// actions, a float64 one of float64 actions), so the core never converts a batch up front.
#pragma once

#include <cstdint>

#include "npy/dtype.h"
#include "npy/math.h"
#include "npy/scalar.h"

namespace pyfastenv {

class Action {
 public:
  Action() = default;
  Action(const void* data, DType dtype, int size) : data_(data), dtype_(dtype), size_(size) {}

  int size() const { return size_; }
  DType dtype() const { return dtype_; }

  /// Index of a discrete action.
  int64_t index() const { return *static_cast<const int64_t*>(data_); }

  NumpyScalar operator[](int i) const {
    return dtype_ == DType::kFloat32 ? NumpyScalar::Float32(f32()[i])
                                     : NumpyScalar::Float64(f64()[i]);
  }

  void CopyTo(double* out) const {
    for (int i = 0; i < size_; ++i) out[i] = dtype_ == DType::kFloat32 ? f32()[i] : f64()[i];
  }

  /// np.sum(np.square(action)), of the action's dtype.
  NumpyScalar SumOfSquares() const {
    if (dtype_ == DType::kFloat32) {
      const float* a = f32();
      return NumpyScalar::Float32(
          npy::PairwiseSum<float>([a](ptrdiff_t i) { return a[i] * a[i]; }, 0, size_));
    }
    return NumpyScalar::Float64(npy::SumOfSquares(f64(), size_));
  }

 private:
  const float* f32() const { return static_cast<const float*>(data_); }
  const double* f64() const { return static_cast<const double*>(data_); }

  const void* data_ = nullptr;
  DType dtype_ = DType::kFloat64;
  int size_ = 0;
};

}  // namespace pyfastenv
