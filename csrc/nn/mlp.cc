#include "nn/mlp.h"

#include <algorithm>
#include <utility>

namespace pyfastenv {

AlignedFloats::AlignedFloats(size_t size)
    : data_(static_cast<float*>(::operator new[](size * sizeof(float), std::align_val_t{64}))) {
  std::fill_n(data_.get(), size, 0.0F);
}

Mlp::Mlp(int num_networks, std::vector<int> sizes, Activation activation, bool layer_norm)
    : num_networks_(num_networks), sizes_(std::move(sizes)), activation_(activation) {
  for (size_t i = 0; i + 1 < sizes_.size(); ++i) {
    const int in = i == 0 ? Padded(sizes_[0], DenseLayer::kInMultiple) : layers_.back().out;
    layers_.push_back({in, Padded(sizes_[i + 1], DenseLayer::kOutMultiple), network_size_,
                       layer_norm && i + 2 < sizes_.size()});
    network_size_ += layers_.back().size();
  }
  parameters_ = AlignedFloats(network_size_ * static_cast<size_t>(num_networks));
}

void Mlp::SetLayer(int layer, const float* weights, const float* biases) {
  const auto index = static_cast<size_t>(layer);
  const int in = sizes_[index];
  const int out = sizes_[index + 1];
  for (int k = 0; k < num_networks_; ++k) {
    float* target = At(k, layers_[index]);
    for (int i = 0; i < in; ++i, weights += out) {
      std::copy_n(weights, out, target + static_cast<ptrdiff_t>(i) * layers_[index].out);
    }
    std::copy_n(biases, out, target + layers_[index].weights_size());
    biases += out;
  }
}

void Mlp::SetNorm(int layer, const float* norm) {
  const auto index = static_cast<size_t>(layer);
  const Layer& padded = layers_[index];
  for (int k = 0; k < num_networks_; ++k) {
    float* target = At(k, padded) + padded.weights_size() + padded.out;
    for (int i = 0; i < 2; ++i, norm += sizes_[index + 1], target += padded.out) {
      std::copy_n(norm, sizes_[index + 1], target);
    }
  }
}

Mlp::Scratch::Scratch(const Mlp& mlp) {
  buffers_[0] = AlignedFloats(static_cast<size_t>(mlp.layers_.front().in));
  int widest = 0;
  for (const Layer& layer : mlp.layers_) widest = std::max(widest, layer.out);
  for (int i = 1; i < 3; ++i) buffers_[i] = AlignedFloats(static_cast<size_t>(widest));
}

const float* Mlp::Forward(int network, Scratch& scratch) const {
  Scratch* const scratches[] = {&scratch};
  const float* output;
  Forward(network, scratches, &output);
  return output;
}

void Mlp::Forward(int network, std::span<Scratch* const> scratches, const float** outputs) const {
  const size_t count = scratches.size();
  const DenseFunction dense = BestDense(static_cast<int>(count));
  float* y[kMaxInputs];
  for (size_t n = 0; n < count; ++n) outputs[n] = scratches[n]->buffers_[0].data();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const float* weights = At(network, layer);
    for (size_t n = 0; n < count; ++n) y[n] = scratches[n]->buffers_[1 + i % 2].data();
    const float* biases = weights + layer.weights_size();
    dense({weights, biases, layer.in, layer.out, layer.normalised ? biases + layer.out : nullptr,
           sizes_[i + 1]},
          static_cast<int>(count), outputs,
          i + 1 < layers_.size() ? activation_ : Activation::kIdentity, y);
    std::copy_n(y, count, outputs);
  }
}

}  // namespace pyfastenv
