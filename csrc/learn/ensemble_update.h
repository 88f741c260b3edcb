// Training of an ensemble of Gaussian networks, in float32 or on the processor's matrix unit.
//
// The reference is pyfastenv/algorithms/mbpo/dynamics.py (EnsembleDynamics), whose vectors of
// parameters this changes in place; the hidden layers are SiLU. Every network has its own samples,
// log-variance bounds and optimiser: each is trained on one thread for a whole epoch, and results
// do not depend on the number of threads. One call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/parallel_for.h"
#include "learn/flat_layers.h"
#include "learn/gaussian_kernels.h"

namespace pyfastenv {

struct EnsembleOptions {
  int num_inputs = 1;
  int num_targets = 1;  // a network has twice as many outputs: means and log-variances
  std::vector<int> hidden_sizes;
  bool bfloat16 = false;  // wants BestBf16Kernels()
  int num_networks = 1;
  int num_seeds = 1;  // num_networks / num_seeds networks each, which share their seed's samples
  int batch_size = 1;
  int num_threads = 1;
};

struct EnsembleHyper {
  float lr = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float eps = 1e-8F;
  float bound_coef = 0.01F;
  std::vector<float> decays;  // of each layer
};

class EnsembleUpdate {
 public:
  explicit EnsembleUpdate(const EnsembleOptions& options);
  ~EnsembleUpdate();

  /// The size of the flat vectors: all networks (see FlatLayer), then their upper and their lower
  /// bounds (num_networks, num_targets).
  size_t num_parameters() const;

  /// One pass of minibatches. samples: (num_seeds, n, num_inputs + num_targets); order:
  /// (num_networks, count) rows of a network's seed, in the order of training. `step` is Adam's
  /// count before.
  void RunEpoch(const float* samples, int64_t n, const int64_t* order, int64_t count, int64_t step,
                const EnsembleHyper& hyper, const AdamVectors& vectors);

  /// Mean squared errors of the means, (num_networks), on samples as above.
  void Errors(const float* samples, int64_t n, const float* parameters, float* errors);

 private:
  class Worker;
  template <class Network>
  class WorkerIn;

  int seed_of(int network) const { return network / (options_.num_networks / options_.num_seeds); }

  EnsembleOptions options_;
  const GaussianKernels& kernels_;
  const TrainKernels& train_;
  FlatLayers layers_;
  size_t bounds_;  // where they stand in the flat vectors
  std::vector<std::unique_ptr<Worker>> workers_;

  ParallelFor parallel_;  // last: its threads use everything above
};

}  // namespace pyfastenv
