// Multi-layer perceptrons on the processor's matrix unit, forward and backward: what SacUpdate and
// EnsembleUpdate share. Products are of bfloat16 numbers with float32 sums; the first layer's
// inputs are split in two (x = high + low), so they keep 16 bits. Not on every processor: see
// BestBf16Kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "learn/array_size.h"
#include "learn/bf16_kernels.h"
#include "learn/train_kernels.h"
#include "nn/mlp.h"

namespace pyfastenv {

/// bfloat16 numbers, zero at first.
class Bf16Matrix {
 public:
  Bf16Matrix() = default;
  Bf16Matrix(int rows, int columns) : floats_((ArraySize(rows, columns) + 1) / 2) {}
  uint16_t* data() { return reinterpret_cast<uint16_t*>(floats_.data()); }
  const uint16_t* data() const { return reinterpret_cast<const uint16_t*>(floats_.data()); }

 private:
  AlignedFloats floats_;
};

/// Rounds to the nearest bfloat16, ties to even.
uint16_t RoundToBf16(float x);

/// A layer, and where it stands in the flat vector of N networks: of each layer the N networks'
/// weights (in, out), then of each layer their biases, then of each normalised one (2, out) scales
/// and shifts.
struct Bf16Layer {
  int in, out;        // true sizes
  int padded_in;      // of the forward factor: the first layer has its inputs twice
  int padded_inputs;  // of the inputs' gradient
  int padded_out;
  size_t weights, biases, norm;  // in a flat vector, of network 0; norm: 0 without one

  size_t weights_of(int network) const {
    return weights + static_cast<size_t>(network) * ArraySize(in, out);
  }
  size_t biases_of(int network) const { return biases + ArraySize(network, out); }
  size_t norm_of(int network) const { return norm + ArraySize(network, 2 * out); }
  LayerShape shape() const { return {in, out, padded_in, padded_out}; }
};

using Bf16Layers = std::vector<Bf16Layer>;

/// `sizes`: input, hidden layers (normalised if `layer_norm`), output.
Bf16Layers MakeBf16Layers(const std::vector<int>& sizes, int num_networks, bool layer_norm = false);
/// Length of their flat vector.
size_t FlatSize(const Bf16Layers& layers, int num_networks);

/// A network's parameters as factors, for which passes it says.
class Bf16Parameters {
 public:
  enum class Use { kForward, kBackward, kBackwardToInputs };

  Bf16Parameters(const Bf16Layers& layers, Use use);

  /// Takes them from a flat vector.
  void Pack(const Bf16Kernels& kernels, const Bf16Layers& layers, const float* flat, int network);

 private:
  friend class Bf16Pass;
  std::vector<Bf16Matrix> weights_, transposed_;
  std::vector<AlignedFloats> biases_, norms_;
};

/// Where a flat vector's values and Adam's moments stand.
struct AdamVectors {
  float* parameters = nullptr;
  float* mean = nullptr;
  float* square = nullptr;
};

/// The memory of a pass through networks of one shape. One thread at a time.
class Bf16Pass {
 public:
  /// `max_rows` rows go through at a time, padded to kTile.
  Bf16Pass(const Bf16Kernels& kernels, const TrainKernels& train, const Bf16Layers& layers,
           Activation activation, int max_rows);

  /// The inputs of a row, to be written with WriteInput; rows after the last must be zero.
  void WriteInput(int row, int column, const float* x, int size);

  /// Evaluates `rows` (a multiple of kTile) rows of `inputs_from`'s inputs (by default of its own);
  /// returns float32 outputs, output_stride() apart.
  const float* Forward(const Bf16Parameters& parameters, int rows,
                       const Bf16Pass* inputs_from = nullptr);
  int output_stride() const { return layers_.back().padded_out; }

  /// The gradient by the outputs, (rows, output_stride()): to be filled before a backward pass.
  uint16_t* output_gradient() { return output_gradient_.data(); }

  /// Descends along the gradients of `rows` rows: Adam's step on each layer. `decay(layer)` times
  /// the weights is added to their gradients.
  void Improve(const Bf16Parameters& parameters, int rows, int network, const AdamVectors& vectors,
               const AdamStep& step, const Bf16Pass* inputs_from = nullptr,
               const std::function<float(size_t)>& decay = nullptr);

  /// The gradient by the inputs, (rows, input_stride()) float32; parameters stay.
  const float* InputGradient(const Bf16Parameters& parameters, int rows);
  int input_stride() const { return layers_[0].padded_inputs; }

 private:
  /// Leaves the gradient by scales and shifts, if the layer before has any, in norm_gradient_.
  const uint16_t* Back(const Bf16Parameters& parameters, size_t layer, int rows,
                       const uint16_t* dy);
  void Descend(const Bf16Layer& layer, bool first, int network, const AdamVectors& vectors,
               const AdamStep& step, float decay);

  const Bf16Kernels& kernels_;
  const TrainKernels& train_;
  const Bf16Layers& layers_;
  const Activation activation_;
  Bf16Matrix inputs_;
  std::vector<Bf16Matrix> hidden_, slopes_;
  std::vector<AlignedFloats> normals_, inverse_stds_, norm_slopes_;  // of normalised layers
  AlignedFloats unrounded_, norm_gradient_;
  AlignedFloats outputs_;
  Bf16Matrix output_gradient_, back_[2];
  Bf16Matrix transposed_, packed_gradient_;
  AlignedFloats weight_gradient_, bias_gradient_, input_gradient_;
};

}  // namespace pyfastenv
