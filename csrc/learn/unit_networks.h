// Residual networks of bounded norms (pyfastenv/nn/unit_networks.py: UnitNetwork), forward and
// backward on the processor's matrix unit: batch normalisation, a layer, blocks of two layers with
// normalisation and ReLU, a root-mean-square norm, a layer with a bias.
//
// N networks of one shape. Products are of bfloat16 numbers with float32 sums, and so are features
// between layers; parameters, moments and gradients are float32. A network is evaluated on one
// thread, different ones on different threads: results do not depend on their number. One call at a
// time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/parallel_for.h"
#include "learn/bf16_kernels.h"
#include "learn/unit_kernels.h"
#include "learn/unit_layout.h"

namespace pyfastenv {

class UnitNetworks {
 public:
  /// Wants BestBf16Kernels().
  explicit UnitNetworks(const UnitOptions& options);
  ~UnitNetworks();

  const UnitOptions& options() const { return options_; }
  /// The number of parameters of a network.
  size_t num_parameters() const { return layout_.num_parameters; }
  size_t num_moments() const { return layout_.num_moments; }

  /// inputs (N, rows, num_inputs) to outputs (N, rows, num_outputs), rows at most max_rows. By the
  /// batch's own moments, which the running ones then follow, or by the running ones. Parameters
  /// (N, num_parameters), moments (N, num_moments).
  void Forward(const float* inputs, int rows, const float* parameters, float* moments,
               bool by_batch, float* outputs);

  /// The backward pass of the latest Forward(), whose parameters must not have changed. Writes the
  /// gradients by parameters (N, num_parameters) and by inputs; null: not wanted.
  void Backward(const float* by_outputs, const float* parameters, float* gradients,
                float* by_inputs);

  /// Brings the norms of the parameters (N, num_parameters) back: each output's weights to one,
  /// scales and shifts of a normalisation together to the root of its size.
  void Project(float* parameters);

 private:
  class Network;

  UnitOptions options_;
  UnitLayout layout_;
  std::vector<std::unique_ptr<Network>> networks_;
  int rows_ = 0;
  ParallelFor parallel_;  // last: its threads use everything above
};

}  // namespace pyfastenv
