// Layers of networks whose parameters stand in one flat vector: what passes in bfloat16 and in
// float32 share.
#pragma once

#include <cstddef>
#include <vector>

#include "learn/array_size.h"
#include "learn/train_kernels.h"

namespace pyfastenv {

/// A layer, and where it stands in the flat vector of N networks: of each layer the N networks'
/// weights (in, out), then of each layer their biases, then of each normalised one (2, out) scales
/// and shifts.
struct FlatLayer {
  int in, out;        // true sizes
  int padded_in;      // of the forward factor, which may have the inputs in several parts
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

using FlatLayers = std::vector<FlatLayer>;

/// `sizes`: input, hidden layers (normalised if `layer_norm`), output; padded to multiples of
/// `multiple`. The first layer has its inputs in `parts`.
FlatLayers MakeFlatLayers(const std::vector<int>& sizes, int num_networks, bool layer_norm,
                          int multiple, int parts);
/// Length of their flat vector.
size_t FlatSize(const FlatLayers& layers, int num_networks);

/// What a network's parameters are packed for.
enum class PassUse { kForward, kBackward, kBackwardToInputs };

/// Whether gradients go back through a layer.
inline bool GoesBack(PassUse use, size_t layer) {
  return use == PassUse::kBackwardToInputs || (use == PassUse::kBackward && layer > 0);
}

/// Copies a network's biases and its scales and shifts, where there are any, to padded places.
void PackVectors(const FlatLayer& layer, const float* flat, int network, float* biases,
                 float* norm);

/// Where a flat vector's values and Adam's moments stand.
struct AdamVectors {
  float* parameters = nullptr;
  float* mean = nullptr;
  float* square = nullptr;
};

/// Adam's step of `size` parameters from `begin` on.
inline void Descend(const TrainKernels& kernels, const AdamStep& step, const float* gradient,
                    size_t size, const AdamVectors& vectors, size_t begin) {
  kernels.adam(step, gradient, size, vectors.parameters + begin, vectors.mean + begin,
               vectors.square + begin);
}

/// … of `rows` rows of a layer's weights from `row` on. Moves the rows of `gradient` (rows,
/// padded_out) together, as the parameters stand.
void DescendWeights(const TrainKernels& kernels, const AdamStep& step, const FlatLayer& layer,
                    int network, int row, int rows, float* gradient, const AdamVectors& vectors);
/// … of its biases and, where it is normalised, of scales and shifts (2, padded_out).
void DescendVectors(const TrainKernels& kernels, const AdamStep& step, const FlatLayer& layer,
                    int network, const float* by_biases, const float* by_norm,
                    const AdamVectors& vectors);

}  // namespace pyfastenv
