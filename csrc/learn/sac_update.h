// Soft actor-critic's gradient steps in float32 or on the processor's matrix unit, for K seeds side
// by side.
//
// The reference is pyfastenv/algorithms/sac/spec.py (SACLearner.update), whose vectors of
// parameters this changes in place; the hidden layers are ReLU, normalised or not. In bfloat16,
// products are of such numbers with float32 sums (inputs of a network are split in two, so they
// keep 16 bits); parameters, losses and Adam are float32. Different seeds run on different threads;
// threads beyond their number share a seed's passes in float32. Results do not depend on the number
// of threads. One call at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/parallel_for.h"
#include "learn/flat_layers.h"
#include "learn/gaussian_kernels.h"

namespace pyfastenv {

struct SacOptions {
  int obs_size = 1;
  int action_size = 1;
  std::vector<int> hidden_sizes;
  bool layer_norm = false;
  bool bfloat16 = false;  // wants BestBf16Kernels()
  int num_seeds = 1;
  int batch_size = 1;
  int num_threads = 1;
};

struct SacHyper {
  float policy_lr = 3e-4F;
  float critic_lr = 3e-4F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float eps = 1e-8F;
  float gamma = 0.99F;
  float tau = 0.005F;
  float log_std_min = -20.0F;
  float log_std_max = 2.0F;
  float target_entropy = -1.0F;
  bool learn_temperature = true;
};

/// Flat vectors of all seeds (see FlatLayer).
struct SacVectors {
  AdamVectors policy;  // K networks, then the K log-temperatures, if they are learned
  AdamVectors critic;  // 2 K networks, seed k's are 2 k and 2 k + 1
  float* target = nullptr;
  const float* log_temperature = nullptr;  // (K) where it is not learned
};

class SacUpdate {
 public:
  static constexpr int kNumMetrics = 5;

  explicit SacUpdate(const SacOptions& options);
  ~SacUpdate();

  size_t policy_size(bool learn_temperature) const;
  size_t critic_size() const;

  /// `count` steps. rows: (count, K, B, 2 obs + action + 2); noise: (count, K, 2 B, action).
  /// `step` is Adam's count before. metrics: (kNumMetrics, K) of the last step.
  void Run(const float* rows, const float* noise, int count, int64_t step, const SacHyper& hyper,
           const SacVectors& vectors, float* metrics);

 private:
  class Seed;
  template <class Network>
  class SeedIn;

  template <class Network, class MakeNetwork>
  void AddSeeds(const MakeNetwork& make_network);

  SacOptions options_;
  const GaussianKernels& kernels_;
  const TrainKernels& train_;
  FlatLayers policy_layers_, critic_layers_;
  std::vector<std::unique_ptr<Seed>> seeds_;

  // the call at hand; written before the seeds are given out
  const float* rows_ = nullptr;
  const float* noise_ = nullptr;
  int count_ = 0;
  int64_t step_ = 0;
  SacHyper hyper_;
  SacVectors vectors_;
  float* metrics_ = nullptr;

  ParallelFor parallel_;  // last: its threads use everything above
};

}  // namespace pyfastenv
