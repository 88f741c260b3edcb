// Multi-layer perceptrons on the processor's matrix unit, forward and backward, for SacUpdate and
// EnsembleUpdate; f32_network.h has the same in float32, with the same names. Products are of
// bfloat16 numbers with float32 sums; the first layer's inputs are split in two (x = high + low),
// so they keep 16 bits. Not on every processor: see BestBf16Kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "learn/bf16_kernels.h"
#include "learn/flat_layers.h"
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

/// The kernels of passes, each of which one thread computes.
struct Bf16Network {
  class Parameters;
  class Pass;
  class Section;

  /// Rows of a pass are padded to a multiple of it.
  static constexpr int kRows = kTile;

  /// Wants BestBf16Kernels().
  Bf16Network();

  static FlatLayers MakeLayers(const std::vector<int>& sizes, int num_networks,
                               bool layer_norm = false) {
    return MakeFlatLayers(sizes, num_networks, layer_norm, kTile, /*parts=*/2);
  }

  const Bf16Kernels& kernels;
  const TrainKernels& train;
};

/// A thread's passes stand between its constructor and its destructor.
class Bf16Network::Section : public Bf16Section {
 public:
  explicit Section(const Bf16Network& network) : Bf16Section(network.kernels) {}
};

/// A network's parameters as factors.
class Bf16Network::Parameters {
 public:
  Parameters(const Bf16Network& network, const FlatLayers& layers, PassUse use);

  /// Takes them from a flat vector of such networks.
  void Pack(const float* flat, int network);

 private:
  const Bf16Kernels& kernels_;
  const FlatLayers& layers_;
  friend class Bf16Network::Pass;
  std::vector<Bf16Matrix> weights_, transposed_;
  std::vector<AlignedFloats> biases_, norms_;
};

/// The memory of a pass through networks of one shape. One thread at a time.
class Bf16Network::Pass {
 public:
  /// `max_rows` rows go through at a time, padded to kRows.
  Pass(const Bf16Network& network, const FlatLayers& layers, Activation activation, int max_rows);

  /// The inputs of a row, to be written with WriteInput; rows after the last must be zero.
  void WriteInput(int row, int column, const float* x, int size);

  /// Evaluates `rows` (a multiple of kRows) rows of `inputs_from`'s inputs (by default of its own);
  /// returns float32 outputs, output_stride() apart.
  const float* Forward(const Parameters& parameters, int rows, const Pass* inputs_from = nullptr);
  int output_stride() const { return layers_.back().padded_out; }

  /// The gradient by a row's outputs, to be written before a backward pass.
  void WriteOutputGradient(int row, const float* gradient, int size);
  /// … which is zero from row `begin` on.
  void ClearOutputGradient(int begin, int rows);

  /// Descends along the gradients of `rows` rows: Adam's step on each layer. `decay(layer)` times
  /// the weights is added to their gradients.
  void Improve(const Parameters& parameters, int rows, int network, const AdamVectors& vectors,
               const AdamStep& step, const Pass* inputs_from = nullptr,
               const std::function<float(size_t)>& decay = nullptr);

  /// The gradient by the inputs, (rows, input_stride()) float32; parameters stay.
  const float* InputGradient(const Parameters& parameters, int rows);
  int input_stride() const { return layers_[0].padded_inputs; }

 private:
  /// Leaves the gradient by scales and shifts, if the layer before has any, in norm_gradient_.
  const uint16_t* Back(const Parameters& parameters, size_t layer, int rows, const uint16_t* dy);

  const Bf16Kernels& kernels_;
  const TrainKernels& train_;
  const FlatLayers& layers_;
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
