// K small float32 multi-layer perceptrons of the same shape, evaluated on a few inputs at a time.
//
// Immutable once filled; any number of threads may evaluate it, each with its own Scratch.
#pragma once

#include <memory>
#include <new>
#include <span>
#include <vector>

#include "nn/mlp_kernels.h"

namespace pyfastenv {

/// The next multiple.
inline int Padded(int size, int multiple) { return (size + multiple - 1) / multiple * multiple; }

/// 64-byte aligned floats, zero at first.
class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(size_t size);
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* data) const { ::operator delete[](data, std::align_val_t{64}); }
  };
  std::unique_ptr<float[], Free> data_;
};

class Mlp {
 public:
  /// `sizes`: input, hidden layers, output. `activation` follows every layer but the last, and
  /// layer normalisation, if there is any, comes before it.
  Mlp(int num_networks, std::vector<int> sizes, Activation activation, bool layer_norm = false);

  /// Copies weights (num_networks, in, out) and biases (num_networks, out) of a layer.
  void SetLayer(int layer, const float* weights, const float* biases);
  /// … and scales and shifts (num_networks, 2, out) of a hidden one's normalisation.
  void SetNorm(int layer, const float* norm);

  int num_networks() const { return num_networks_; }
  int input_size() const { return sizes_.front(); }
  int output_size() const { return sizes_.back(); }
  const std::vector<int>& sizes() const { return sizes_; }

  /// Memory of one thread: the input goes into `input` (input_size), zeros follow it.
  class Scratch {
   public:
    explicit Scratch(const Mlp& mlp);
    float* input() { return buffers_[0].data(); }

   private:
    friend class Mlp;
    AlignedFloats buffers_[3];
  };

  /// Evaluates a network on scratch.input(); returns output_size floats in scratch.
  const float* Forward(int network, Scratch& scratch) const;
  /// The same, bit for bit, for up to kMaxInputs scratches, with one pass through the weights.
  void Forward(int network, std::span<Scratch* const> scratches, const float** outputs) const;
  static constexpr size_t kMaxInputs = 16;

 private:
  struct Layer {
    int in;   // padded
    int out;  // padded
    size_t weights_size() const { return static_cast<size_t>(in) * static_cast<size_t>(out); }
    // in whole cache lines
    size_t size() const {
      return (weights_size() + static_cast<size_t>(normalised ? 3 * out : out) + 15) / 16 * 16;
    }
    size_t offset;  // in a network
    bool normalised;
  };

  float* At(int network, const Layer& layer) {
    return parameters_.data() + static_cast<size_t>(network) * network_size_ + layer.offset;
  }
  const float* At(int network, const Layer& layer) const {
    return parameters_.data() + static_cast<size_t>(network) * network_size_ + layer.offset;
  }

  int num_networks_;
  std::vector<int> sizes_;
  Activation activation_;
  std::vector<Layer> layers_;
  size_t network_size_ = 0;
  AlignedFloats parameters_;  // per network and layer: weights, biases, scales and shifts
};

}  // namespace pyfastenv
