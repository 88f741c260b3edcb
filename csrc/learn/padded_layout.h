// Where the parameters of small networks stand: in the caller's flat vector, and in a padded one
// that kernels read without remainders.
#pragma once

#include <cstddef>
#include <vector>

#include "learn/train_kernels.h"

namespace pyfastenv {

struct PaddedLayer {
  LayerShape shape;
  size_t weights, biases;  // in padded vectors
  size_t transposed;       // in vectors of transposed weights
  size_t norm;             // scales and shifts of a normalised one in padded vectors, else 0
};

class PaddedLayout {
 public:
  /// Layers' sizes are padded to multiples of `multiple`, itself one of kColumnMultiple.
  PaddedLayout(int multiple, bool layer_norm) : multiple_(multiple), layer_norm_(layer_norm) {}

  /// Layers of `sizes` (input, hidden, …, output). In flat vectors: the weights (in, out) layer by
  /// layer, then the biases, then scales and shifts of hidden layers that are normalised.
  std::vector<PaddedLayer> AddNetwork(const std::vector<int>& sizes);
  /// A vector of its own; returns its place in padded vectors.
  size_t AddVector(int size);

  size_t flat_size() const { return flat_size_; }
  size_t padded_size() const { return padded_size_; }
  size_t transposed_size() const { return transposed_size_; }

  void Scatter(const float* flat, float* padded) const;
  void Gather(const float* padded, float* flat) const;

 private:
  // numbers that stand one after another in both
  struct Run {
    size_t flat, padded;
    int size;
  };

  int multiple_;
  bool layer_norm_;  // of hidden layers
  size_t flat_size_ = 0;
  size_t padded_size_ = 0;
  size_t transposed_size_ = 0;
  std::vector<Run> runs_;
};

}  // namespace pyfastenv
