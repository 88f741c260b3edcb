// PPO's update on the CPU: all minibatches of some epochs in one call, on threads of its own.
//
// The reference is ppo_loss in pyfastenv/algorithms/ppo/spec.py with pyfastenv/nn/optim.py
// (FlatAdam); this does the same arithmetic, in another order of summation, several times faster: a
// block of rows goes forward and backward through a network while it is in the first-level cache.
// In bfloat16 the products are of such numbers, with float32 sums; parameters, losses, gradients,
// their norm and Adam stay in float32.
//
// The two networks share nothing but the norm of their gradient. So the first half of the threads
// has the policy and the second the value network, with its moments, for a whole call, and nothing
// large moves from one processor to another. Each minibatch is cut into shards whose gradients are
// added in a fixed order, and how many depends on its size alone: results do not depend on the
// number of threads. One call at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/fork.h"
#include "core/parallel_for.h"
#include "core/spin_barrier.h"
#include "learn/bf16_network.h"
#include "learn/padded_layout.h"
#include "learn/ppo_loss.h"
#include "learn/train_kernels.h"
#include "nn/mlp.h"

namespace pyfastenv {

struct PpoOptions {
  int obs_size = 0;               // of an observation, of which a network may read a part
  std::vector<int> policy_sizes;  // input, hidden layers, output
  std::vector<int> value_sizes;   // input, …, 1
  int policy_begin = 0;           // where in an observation a network's inputs begin
  int value_begin = 0;
  Activation activation = Activation::kTanh;
  bool discrete = false;  // else Gaussian, with a log-std that does not depend on the observation
  bool layer_norm = false;
  bool bfloat16 = false;  // wants BestBf16Kernels()
  int num_threads = 1;
};

/// The metrics of a minibatch.
struct PpoMetrics {
  PpoSums means;
  double grad_norm = 0.0;
};

/// The step size after a minibatch from which the policy was so far from the one that acted.
float AdaptedRate(const PpoHyper& hyper, float lr, double kl);

class PpoUpdate {
 public:
  explicit PpoUpdate(const PpoOptions& options);
  ~PpoUpdate();

  /// Length of the flat vectors: the policy's weights (in, out) layer by layer, its biases, the
  /// scales and shifts of its layer normalisation, the value network's likewise, and log_std unless
  /// discrete.
  size_t num_parameters() const { return layout_.flat_size(); }
  /// Columns of the samples: see PpoColumns.
  int num_columns() const { return static_cast<int>(columns_.size()); }

  /// Runs every whole minibatch of each epoch's order: `orders` (num_epochs, n) are row numbers of
  /// `samples`. `parameters`, `mean` and `square` are updated in place; `step` is Adam's count
  /// before, and hyper.lr becomes the last step's size. Returns the metrics of each epoch's last
  /// minibatch.
  std::vector<PpoMetrics> RunEpochs(const float* samples, const int64_t* orders, int num_epochs,
                                    int64_t n, PpoHyper& hyper, int64_t step, float* parameters,
                                    float* mean, float* square);

  /// The gradient of the loss of n samples, as long as the parameters, before it is clipped.
  /// Advantages count as they are.
  PpoSums Gradient(const float* samples, int64_t n, PpoHyper hyper, const float* parameters,
                   float* gradient);

  /// The value network's outputs for n rows of obs (n, obs_size).
  void Values(const float* obs, int64_t n, const float* parameters, float* values);

 private:
  static constexpr int kMaxShards = 8;  // of a network
  static constexpr int kMaxBlockRows = 256;

  struct Network {
    std::vector<PaddedLayer> layers;
    bool is_policy;
    int obs_begin;                         // of its inputs in an observation
    std::vector<AlignedFloats> gradients;  // of each shard, as long as all padded parameters
  };
  struct Piece;
  struct Worker;

  // what all workers read in a call
  struct Call {
    const float* samples;
    const int64_t* orders;
    int num_epochs;
    int64_t n;
    PpoHyper hyper;
    int64_t step;
    bool improves;  // else the parameters stay, and gradient_ is what was wanted
    int num_shards = 0;
    int num_workers = 0;
  };

  void AddPieces();
  void AssignPieces(int num_workers);
  /// Brings what passes read of a piece's parameters up to date.
  void Pack(const Piece& piece);
  bool has_threads() const { return generation_ == ForkGeneration(); }

  /// Does what the call says from these parameters on.
  void Run(const Call& call, const float* parameters);
  /// The means of a minibatch, added up in the order of its shards.
  PpoSums Means(int64_t step) const;
  void Work(int worker);
  /// Returns the gradient's norm.
  double RunMinibatch(int worker, const int64_t* order, int64_t step);
  PpoSums RunShard(Worker& worker, Network& network, int shard, const int64_t* order);
  void RunBlock(Worker& worker, const Network& network, const int64_t* order, int rows, bool first,
                float* gradient, PpoSums& sums);
  /// Evaluates rows that begin with observations; returns block_rows_ rows of outputs.
  const float* Forward(Worker& worker, const Network& network, std::span<const float* const> rows);
  void Backward(Worker& worker, const Network& network, int rows, bool first, float* gradient);
  const float* ForwardBf16(Worker& worker, const Network& network,
                           std::span<const float* const> rows);
  void BackwardBf16(Worker& worker, const Network& network, int rows, bool first, float* gradient);
  /// Adds the shards' gradients of a worker's pieces.
  void Reduce(int worker, int64_t step);
  double GradientNorm(int64_t step) const;
  /// Every worker finds the same size for its share of the step.
  void AdaptRate(Worker& worker, int64_t step) const;
  void Improve(int worker, int64_t step, double norm);

  int ChooseWorkers(int num_shards);
  void NoteTime(double seconds);

  PpoOptions options_;
  PpoColumns columns_;
  const TrainKernels& kernels_;
  const Bf16Kernels* bf16_;  // null: float32
  const int row_multiple_;   // of a block
  const int block_rows_;     // at most
  const int shard_rows_;     // at least
  const int piece_rows_;     // of weights, and to what sizes of layers are padded
  PaddedLayout layout_;
  std::vector<Network> networks_;  // policy, value
  size_t log_std_ = 0;             // place in padded vectors
  std::vector<Piece> pieces_;      // the policy's, then the value network's
  AlignedFloats parameters_, mean_, square_, gradient_, transposed_;
  Bf16Matrix packed_, packed_transposed_;  // factors of the passes in bfloat16
  std::vector<Worker> workers_;
  // of each piece's gradient: while one step's are read, the next one's are written …
  std::vector<double> squares_[2];
  std::array<PpoSums, 2 * kMaxShards> sums_[2];  // … and of each shard, the policy's first
  std::vector<PpoMetrics> metrics_;              // of each epoch's last minibatch
  Call call_{};
  double best_time_ = 0.0;     // of a minibatch by several workers [s] …
  int size_of_best_time_ = 0;  // … of so many samples
  int disturbed_calls_ = 0;    // in a row
  int calls_alone_ = 0;        // still to be made by one worker
  unsigned generation_;        // of the process that has the threads
  SpinBarrier barrier_;
  ParallelFor parallel_;  // last: its threads use everything above
};

}  // namespace pyfastenv
