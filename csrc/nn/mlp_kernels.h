// Dense layers on a few input vectors, compiled several times for different vector units.
//
// Results may differ in the last bits from machine to machine: which has a fused multiply-add is
// decided once per process. They depend neither on the thread nor on how many inputs there are.
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

  const float* norm = nullptr;  // (2, out) scales and shifts, or no layer normalisation
  int norm_size = 0;            // of the outputs that it normalises; the others are padding
};

/// y[n] (out) = activation(norm(x[n] (in) @ weights + biases)) for n < count; y[n] is 32-byte
/// aligned.
using DenseFunction = void (*)(const DenseLayer& layer, int count, const float* const* x,
                               Activation activation, float* const* y);

/// The fastest that this processor runs for so many inputs, between steps of physics. Of 512 bits
/// for more than four: physics of so many environments at once uses such vectors itself. Beside
/// that of single ones they would lower the clock (HalfCheetah by mj_step: 0.94 of the physics
/// limit instead of 0.99). The bits are those of the narrower one.
DenseFunction BestDense(int count);

}  // namespace pyfastenv
