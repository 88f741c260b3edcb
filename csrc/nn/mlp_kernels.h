// Dense layers on a few input vectors, compiled several times for different vector units.
//
// Which of them runs is decided once per process, so results are the same in every thread; they may
// differ in the last bits from machine to machine. They do not depend on how many inputs there are.
#pragma once

namespace pyfastenv {

enum class Activation { kIdentity, kTanh, kRelu, kElu, kSilu };

/// Weights (in, out) row-major, 32-byte aligned and zero-padded to these multiples, so kernels have
/// no remainders. Every activation maps 0 to 0: padding stays 0 from layer to layer.
struct DenseLayer {
  static constexpr int kInMultiple = 8;
  static constexpr int kOutMultiple = 8;

  const float* weights = nullptr;  // (in, out)
  const float* biases = nullptr;   // (out)
  int in = 0;
  int out = 0;
};

/// y[n] (out) = activation(x[n] (in) @ weights + biases) for n < count; y[n] is 32-byte aligned.
using DenseFunction = void (*)(const DenseLayer& layer, int count, const float* const* x,
                               Activation activation, float* const* y);

/// The fastest that this processor runs between steps of physics.
DenseFunction BestDense();

}  // namespace pyfastenv
