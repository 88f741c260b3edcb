// PPO's losses, and their gradients by the networks' outputs: ppo_loss in
// pyfastenv/algorithms/ppo/spec.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "learn/loss_kernels.h"
#include "learn/train_kernels.h"
#include "nn/mlp.h"

namespace pyfastenv {

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
  bool mirrored = false;    // a minibatch's second half are copies, of which there are no metrics
  float desired_kl = 0.0F;  // to which the step size is adapted, 0: it is not …
  float min_lr = 0.0F;      // … between these
  float max_lr = 0.0F;
  float min_log_std = -std::numeric_limits<float>::infinity();

  /// How many of a minibatch's rows have metrics.
  int num_counted() const { return mirrored ? minibatch_size / 2 : minibatch_size; }
};

/// A row of samples: observation, action, log-prob, advantage, return, value.
struct PpoColumns {
  int obs;
  int action;

  ptrdiff_t size() const { return obs + action + 4; }
  int log_prob() const { return obs + action; }
  int advantage() const { return log_prob() + 1; }
  int target() const { return log_prob() + 2; }  // the return
  int value() const { return log_prob() + 3; }
};

/// How a minibatch's advantages are normalised.
struct AdvantageScale {
  float mean = 0.0F;
  float scale = 1.0F;

  static AdvantageScale Of(const float* samples, const PpoColumns& columns, const int64_t* order,
                           int64_t size);
};

/// Sums over samples, or their means.
struct PpoSums {
  double policy_loss = 0.0;
  double value_loss = 0.0;
  double entropy = 0.0;
  double kl = 0.0;
  double clipped = 0.0;

  void Add(const PpoSums& other, double factor) {
    policy_loss += other.policy_loss * factor;
    value_loss += other.value_loss * factor;
    entropy += other.entropy * factor;
    kl += other.kl * factor;
    clipped += other.clipped * factor;
  }
};

/// One thread's.
class PolicyLoss {
 public:
  /// `outputs_stride`: of the network's outputs, a multiple of kColumnMultiple as max_rows is.
  PolicyLoss(const PpoColumns& columns, int num_outputs, int outputs_stride, bool discrete,
             int max_rows);

  /// Before each minibatch; log_std (num_outputs) unless discrete.
  void Begin(const PpoHyper& hyper, AdvantageScale advantages, const float* log_std);
  /// Writes the gradient by the outputs (rows, outputs_stride); adds that by log_std to
  /// log_std_gradient. `outputs` and `gradient` have max_rows rows.
  void Rows(std::span<const float* const> samples, const float* outputs, float* gradient,
            float* log_std_gradient, PpoSums& sums);

 private:
  void DiscreteRow(const float* sample, const float* outputs, float* gradient, PpoSums& sums);
  void GaussianBlock(std::span<const float* const> samples, const float* outputs, float* gradient,
                     float* log_std_gradient, PpoSums& sums);

  PpoColumns columns_;
  int num_outputs_;
  int outputs_stride_;
  bool discrete_;
  int max_rows_;
  const TrainKernels& kernels_;
  GaussianLossFunction gaussian_loss_;
  PpoHyper hyper_;
  AdvantageScale advantages_;
  float share_ = 0.0F;  // of a row in the loss
  std::vector<float> probabilities_;
  std::vector<float> inverse_std_;
  float log_std_sum_ = 0.0F;
  // a number of each row one after another
  AlignedFloats actions_, means_, gradient_, old_log_probs_, row_advantages_;
};

/// Returns the gradient by the value.
float ValueLoss(const PpoHyper& hyper, const PpoColumns& columns, const float* sample, float value,
                PpoSums& sums);

}  // namespace pyfastenv
