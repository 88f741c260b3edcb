// Multi-layer perceptrons in float32, forward and backward, for SacUpdate and EnsembleUpdate on any
// processor; bf16_network.h has the same for matrix units, with the same names.
//
// Rows of a pass are shared out in blocks among threads, and each block goes through all layers;
// gradients of weights are shared out by rows of these. No sum depends on the number of threads.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/parallel_for.h"
#include "learn/denormals.h"
#include "learn/flat_layers.h"
#include "learn/train_kernels.h"
#include "nn/mlp.h"

namespace pyfastenv {

/// The kernels of passes, and the threads that share one pass at a time.
struct F32Network {
  class Parameters;
  class Pass;
  class Section;

  /// Rows of a pass are padded to a multiple of it.
  static constexpr int kRows = kRowMultiple;

  explicit F32Network(int num_threads);

  static FlatLayers MakeLayers(const std::vector<int>& sizes, int num_networks,
                               bool layer_norm = false) {
    return MakeFlatLayers(sizes, num_networks, layer_norm, kColumnMultiple, /*parts=*/1);
  }

  const TrainKernels& train;
  std::unique_ptr<ParallelFor> threads;
};

/// The calling thread's passes stand between its constructor and its destructor.
class F32Network::Section : public FlushDenormals {
 public:
  explicit Section(const F32Network& /*network*/) {}
};

/// A network's parameters, padded.
class F32Network::Parameters {
 public:
  Parameters(const F32Network& network, const FlatLayers& layers, PassUse use);

  /// Takes them from a flat vector of such networks.
  void Pack(const float* flat, int network);

 private:
  friend class F32Network::Pass;

  const TrainKernels& train_;
  const FlatLayers& layers_;
  std::vector<AlignedFloats> weights_, transposed_, biases_, norms_;
};

/// The memory of a pass through networks of one shape. One call at a time.
class F32Network::Pass {
 public:
  /// `max_rows` rows go through at a time, padded to kRows.
  Pass(const F32Network& network, const FlatLayers& layers, Activation activation, int max_rows);

  /// The inputs of a row, to be written with WriteInput; rows after the last must be zero.
  void WriteInput(int row, int column, const float* x, int size);

  /// Evaluates `rows` (a multiple of kRows) rows of `inputs_from`'s inputs (by default of its own);
  /// returns outputs, output_stride() apart.
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

  /// The gradient by the inputs, (rows, input_stride()); parameters stay.
  const float* InputGradient(const Parameters& parameters, int rows);
  int input_stride() const { return layers_[0].padded_inputs; }

 private:
  /// Some rows of a layer's weights, which one thread improves.
  struct Piece {
    size_t layer;
    int row, rows;
    size_t gradient;  // its place
  };

  /// Calls use(block, first row, rows) for all blocks.
  void ForBlocks(int rows, const std::function<void(int, int, int)>& use);
  /// Leaves the gradients by the outputs of layers, before their activation, in back_, and those by
  /// scales and shifts in norm_gradients_.
  void Back(const Parameters& parameters, int rows, bool to_inputs);
  float* norm_gradient(size_t layer, int block) {
    return norm_gradients_[layer].data() + ArraySize(block, 2 * layers_[layer].padded_out);
  }

  const TrainKernels& train_;
  ParallelFor& threads_;
  const FlatLayers& layers_;
  const Activation activation_;
  std::vector<Piece> pieces_;
  AlignedFloats inputs_, input_gradient_;
  std::vector<AlignedFloats> outputs_, slopes_, back_;                  // of each layer
  std::vector<AlignedFloats> normals_, inverse_stds_, norm_gradients_;  // of normalised ones
  AlignedFloats weight_gradients_;
  std::vector<AlignedFloats> bias_gradients_;
};

}  // namespace pyfastenv
