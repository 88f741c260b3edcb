// PPO's update on the CPU: all minibatches of an epoch in one call, on threads of its own.
//
// The reference is pyfastenv/nn/functional.py (ppo_gradients) with pyfastenv/nn/optim.py
// (FlatAdam); this does the same arithmetic, in another order of summation, several times faster: a
// block of rows goes forward and backward through both networks while it is in the first-level
// cache.
//
// Each minibatch is cut into parts whose gradients are added in a fixed order, and how many parts
// depends on its size alone: results do not depend on the number of threads. One call at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/parallel_for.h"
#include "learn/train_kernels.h"
#include "nn/mlp.h"

namespace pyfastenv {

struct PpoOptions {
  std::vector<int> policy_sizes;  // input, hidden layers, output
  std::vector<int> value_sizes;   // the same input, …, 1
  Activation activation = Activation::kTanh;
  bool discrete = false;  // else Gaussian, with a log-std that does not depend on the observation
  int num_threads = 1;
};

struct PpoHyper {
  int minibatch_size = 0;
  float lr = 0.0F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float eps = 1e-5F;
  float clip = 0.2F;
  float value_clip = 0.0F;  // 0: none
  float entropy_coef = 0.0F;
  float value_coef = 0.5F;
  float max_grad_norm = 0.5F;
  bool normalize_advantages = true;
};

/// Means over a minibatch.
struct PpoMetrics {
  double policy_loss = 0.0;
  double value_loss = 0.0;
  double entropy = 0.0;
  double kl = 0.0;
  double clip_fraction = 0.0;
  double grad_norm = 0.0;
};

class PpoUpdate {
 public:
  explicit PpoUpdate(const PpoOptions& options);
  ~PpoUpdate();

  /// Length of the flat vectors: the policy's weights (in, out) layer by layer, its biases, the
  /// value network's likewise, and log_std unless discrete.
  size_t num_parameters() const { return num_parameters_; }
  /// Columns of the samples: observation, action, log-prob, advantage, return, value.
  int num_columns() const { return obs_size_ + action_columns_ + 4; }

  /// Runs every whole minibatch of `order` (n row numbers of `samples`). `parameters`, `mean` and
  /// `square` are updated in place; `step` is Adam's count before. Returns the last one's metrics.
  PpoMetrics RunEpoch(const float* samples, const int64_t* order, int64_t n, const PpoHyper& hyper,
                      int64_t step, float* parameters, float* mean, float* square);

 private:
  static constexpr int kMaxShards = 8;
  static constexpr int kBlockRows = 32;

  // a layer's place in the padded vectors, and its padded sizes
  struct Layer {
    int in, out;  // true sizes
    int padded_in, padded_out;
    size_t weights, biases;  // in parameters and gradients
    size_t transposed;       // in transposed_
    size_t flat_weights, flat_biases;
  };
  struct Network {
    std::vector<Layer> layers;
  };
  struct Shard;
  // Contiguous parameters that one thread reduces and steps: a layer's, or log_std.
  struct Piece {
    size_t begin, size;
    const Layer* layer;    // whose weights are needed transposed; or null
    double squares = 0.0;  // of its gradient
  };

  Network AddNetwork(const std::vector<int>& sizes);
  void Scatter(const float* flat, float* padded) const;
  void Gather(const float* padded, float* flat) const;
  template <class F>
  void ForEachRun(F copy) const;
  void AddPieces(const Network& network);
  void Transpose(const Layer& layer);

  void RunShard(int index);
  void RunBlock(Shard& shard, int64_t begin, int rows, bool first);
  const float* Forward(const Network& network, Shard& shard, std::vector<AlignedFloats>& outputs,
                       std::vector<AlignedFloats>& slopes, int rows);
  void Backward(const Network& network, Shard& shard, const std::vector<AlignedFloats>& outputs,
                const std::vector<AlignedFloats>& slopes, AlignedFloats& gradient, int rows,
                bool first);
  void LossOfRow(Shard& shard, const float* sample, const float* outputs, float value,
                 float* output_gradient, float* value_gradient);
  /// Adds the shards' gradients, steps, and transposes the new weights. Returns the gradient's
  /// norm.
  double Learn(int64_t step);

  PpoOptions options_;
  int obs_size_;
  int action_columns_;
  const TrainKernels& kernels_;
  Network policy_, value_;
  size_t num_parameters_ = 0;  // of the flat vectors
  size_t padded_size_ = 0;     // of the padded ones
  size_t transposed_size_ = 0;
  size_t log_std_ = 0;  // place in the padded vectors
  size_t flat_log_std_ = 0;
  AlignedFloats parameters_, mean_, square_, gradient_, transposed_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Piece> pieces_;

  // the minibatch at hand; written before the shards are given out
  PpoHyper hyper_;
  const float* samples_ = nullptr;
  const int64_t* order_ = nullptr;  // of this minibatch
  int num_shards_ = 0;
  std::array<const float*, kMaxShards> gradients_{};
  float advantage_mean_ = 0.0F;
  float advantage_scale_ = 1.0F;
  std::vector<float> inverse_std_;
  float log_std_sum_ = 0.0F;

  ParallelFor parallel_;  // last: its threads use everything above
};

}  // namespace pyfastenv
