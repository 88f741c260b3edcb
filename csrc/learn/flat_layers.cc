#include "learn/flat_layers.h"

#include <algorithm>

#include "nn/mlp.h"

namespace pyfastenv {

FlatLayers MakeFlatLayers(const std::vector<int>& sizes, int num_networks, bool layer_norm,
                          int multiple, int parts) {
  FlatLayers layers;
  const auto networks = static_cast<size_t>(num_networks);
  size_t offset = 0;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    FlatLayer layer{};
    layer.in = sizes[i];
    layer.out = sizes[i + 1];
    layer.padded_in = Padded(i == 0 ? parts * layer.in : layer.in, multiple);
    layer.padded_inputs = Padded(layer.in, multiple);
    layer.padded_out = Padded(layer.out, multiple);
    layer.weights = offset;
    offset += networks * ArraySize(layer.in, layer.out);
    layers.push_back(layer);
  }
  for (FlatLayer& layer : layers) {
    layer.biases = offset;
    offset += networks * static_cast<size_t>(layer.out);
  }
  for (size_t i = 0; layer_norm && i + 1 < layers.size(); ++i) {
    layers[i].norm = offset;
    offset = layers[i].norm_of(num_networks);
  }
  return layers;
}

size_t FlatSize(const FlatLayers& layers, int num_networks) {
  const bool norms = layers.size() > 1 && layers[0].norm != 0;
  return norms ? layers[layers.size() - 2].norm_of(num_networks)
               : layers.back().biases_of(num_networks);
}

void PackVectors(const FlatLayer& layer, const float* flat, int network, float* biases,
                 float* norm) {
  std::copy_n(flat + layer.biases_of(network), layer.out, biases);
  for (int part = 0; layer.norm != 0 && part < 2; ++part) {
    std::copy_n(flat + layer.norm_of(network) + ArraySize(part, layer.out), layer.out,
                norm + ArraySize(part, layer.padded_out));
  }
}

void DescendWeights(const TrainKernels& kernels, const AdamStep& step, const FlatLayer& layer,
                    int network, int row, int rows, float* gradient, const AdamVectors& vectors) {
  for (int i = 1; layer.padded_out > layer.out && i < rows; ++i) {
    const float* from = gradient + ArraySize(i, layer.padded_out);
    std::copy(from, from + layer.out, gradient + ArraySize(i, layer.out));
  }
  Descend(kernels, step, gradient, ArraySize(rows, layer.out), vectors,
          layer.weights_of(network) + ArraySize(row, layer.out));
}

void DescendVectors(const TrainKernels& kernels, const AdamStep& step, const FlatLayer& layer,
                    int network, const float* by_biases, const float* by_norm,
                    const AdamVectors& vectors) {
  const auto out = static_cast<size_t>(layer.out);
  Descend(kernels, step, by_biases, out, vectors, layer.biases_of(network));
  for (int part = 0; layer.norm != 0 && part < 2; ++part) {
    Descend(kernels, step, by_norm + ArraySize(part, layer.padded_out), out, vectors,
            layer.norm_of(network) + ArraySize(part, layer.out));
  }
}

}  // namespace pyfastenv
