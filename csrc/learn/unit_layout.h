// Where the parameters and running moments of a UnitNetwork (pyfastenv/nn/unit_networks.py) stand.
#pragma once

#include <cstddef>
#include <vector>

namespace pyfastenv {

struct UnitOptions {
  int num_inputs = 1;
  int num_outputs = 1;
  int width = 1;
  int num_blocks = 1;
  int num_networks = 1;
  int max_rows = 1;
  int num_threads = 1;
};

/// A normalisation's place among a network's parameters (scales, then shifts) and among its running
/// moments (means, then variances).
struct UnitNorm {
  int size = 0;
  size_t parameters = 0;
  size_t moments = 0;
};

/// A layer's weights (out, in) among a network's parameters.
struct UnitLayer {
  int in = 0;
  int out = 0;
  size_t weights = 0;
};

/// As PyTorch counts the parameters and buffers of a UnitNetwork.
struct UnitLayout {
  explicit UnitLayout(const UnitOptions& options);

  /// Brings the norms of a network's parameters back: each output's weights to one, scales and
  /// shifts of a normalisation together to the root of its size.
  void Project(float* parameters) const;

  struct Block {
    UnitLayer expand;
    UnitNorm inner;
    UnitLayer contract;
    UnitNorm outer;
  };

  UnitNorm input;
  UnitLayer first;
  std::vector<Block> blocks;
  size_t rms_weights = 0;
  UnitLayer last;
  size_t last_bias = 0;
  size_t num_parameters = 0;
  size_t num_moments = 0;
};

}  // namespace pyfastenv
