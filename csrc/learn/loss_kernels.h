// PPO's loss of a Gaussian policy for some rows at once, compiled for different vector units. Which
// of them runs is decided once per process.
#pragma once

namespace pyfastenv {

struct GaussianTerms {
  int num_actions;
  const float* inverse_std;  // (num_actions)
  float log_prob_constant;   // of the log-probability: what does not depend on the action
  float clip;
  float share;           // of a row in the loss
  float entropy_weight;  // of a row's entropy
};

/// A number of each row stands one after another: columns are `stride` long, a multiple of
/// kColumnMultiple and 64-byte aligned.
struct GaussianRows {
  int rows;
  int stride;
  const float* actions;  // (num_actions, stride)
  const float* means;    // (num_actions, stride)
  const float* old_log_probs;
  const float* advantages;
};

/// Sums over rows.
struct GaussianSums {
  float policy_loss = 0.0F;
  float kl = 0.0F;
  float clipped = 0.0F;
};

/// Writes the gradient by the means (num_actions, stride), zero beyond the last row, and adds that
/// by log_std to log_std_gradient (num_actions).
using GaussianLossFunction = GaussianSums (*)(const GaussianTerms& terms, const GaussianRows& rows,
                                              float* gradient, float* log_std_gradient);

GaussianLossFunction BestGaussianLoss();

}  // namespace pyfastenv
