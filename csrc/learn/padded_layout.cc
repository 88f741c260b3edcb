#include "learn/padded_layout.h"

#include <algorithm>

#include "learn/array_size.h"
#include "nn/mlp.h"

namespace pyfastenv {

std::vector<PaddedLayer> PaddedLayout::AddNetwork(const std::vector<int>& sizes) {
  std::vector<PaddedLayer> layers;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    PaddedLayer layer{};
    LayerShape& shape = layer.shape;
    shape.in = sizes[i];
    shape.out = sizes[i + 1];
    shape.padded_in = Padded(shape.in, multiple_);
    shape.padded_out = Padded(shape.out, multiple_);
    const size_t size = ArraySize(shape.padded_in, shape.padded_out);
    layer.weights = padded_size_;
    layer.biases = layer.weights + size;
    padded_size_ = layer.biases + static_cast<size_t>(shape.padded_out);
    layer.transposed = transposed_size_;
    transposed_size_ += size;
    for (int row = 0; row < shape.in; ++row) {
      const size_t padded_row = ArraySize(row, shape.padded_out);
      runs_.push_back({flat_size_, layer.weights + padded_row, shape.out});
      flat_size_ += static_cast<size_t>(shape.out);
    }
    layers.push_back(layer);
  }
  for (const PaddedLayer& layer : layers) {
    runs_.push_back({flat_size_, layer.biases, layer.shape.out});
    flat_size_ += static_cast<size_t>(layer.shape.out);
  }
  for (size_t i = 0; layer_norm_ && i + 1 < layers.size(); ++i) {
    layers[i].norm = padded_size_;
    for (int part = 0; part < 2; ++part) {
      runs_.push_back({flat_size_, padded_size_, layers[i].shape.out});
      flat_size_ += static_cast<size_t>(layers[i].shape.out);
      padded_size_ += static_cast<size_t>(layers[i].shape.padded_out);
    }
  }
  return layers;
}

size_t PaddedLayout::AddVector(int size) {
  const size_t place = padded_size_;
  runs_.push_back({flat_size_, place, size});
  padded_size_ += static_cast<size_t>(Padded(size, kColumnMultiple));
  flat_size_ += static_cast<size_t>(size);
  return place;
}

void PaddedLayout::Scatter(const float* flat, float* padded) const {
  for (const Run& run : runs_) std::copy_n(flat + run.flat, run.size, padded + run.padded);
}

void PaddedLayout::Gather(const float* padded, float* flat) const {
  for (const Run& run : runs_) std::copy_n(padded + run.padded, run.size, flat + run.flat);
}

}  // namespace pyfastenv
