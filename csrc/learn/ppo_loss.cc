#include "learn/ppo_loss.h"

#include <algorithm>
#include <cmath>

namespace pyfastenv {

namespace {

constexpr float kHalfLogTwoPi = 0.918938533F;

}  // namespace

AdvantageScale AdvantageScale::Of(const float* samples, const PpoColumns& columns,
                                  const int64_t* order, int64_t size) {
  const float* advantages = samples + columns.advantage();
  double sum = 0.0;
  double squares = 0.0;
  for (int64_t i = 0; i < size; ++i) sum += advantages[order[i] * columns.size()];
  const double center = sum / static_cast<double>(size);
  for (int64_t i = 0; i < size; ++i) {
    const double d = advantages[order[i] * columns.size()] - center;
    squares += d * d;
  }
  const double std = std::sqrt(squares / static_cast<double>(std::max<int64_t>(size - 1, 1)));
  return {static_cast<float>(center), static_cast<float>(1.0 / (std + 1e-8))};
}

PolicyLoss::PolicyLoss(const PpoColumns& columns, int num_outputs, int outputs_stride,
                       bool discrete, int max_rows)
    : columns_(columns),
      num_outputs_(num_outputs),
      outputs_stride_(outputs_stride),
      discrete_(discrete),
      max_rows_(max_rows),
      kernels_(BestTrainKernels()),
      gaussian_loss_(BestGaussianLoss()) {
  if (discrete) {
    probabilities_.resize(static_cast<size_t>(num_outputs));
    return;
  }
  inverse_std_.resize(static_cast<size_t>(num_outputs));
  const auto rows = static_cast<size_t>(max_rows);
  actions_ = AlignedFloats(rows * static_cast<size_t>(num_outputs));
  means_ = AlignedFloats(rows * static_cast<size_t>(outputs_stride));
  gradient_ = AlignedFloats(rows * static_cast<size_t>(outputs_stride));
  old_log_probs_ = AlignedFloats(rows);
  row_advantages_ = AlignedFloats(rows);
}

void PolicyLoss::Begin(const PpoHyper& hyper, AdvantageScale advantages, const float* log_std) {
  hyper_ = hyper;
  advantages_ = advantages;
  share_ = 1.0F / static_cast<float>(hyper.minibatch_size);
  log_std_sum_ = 0.0F;
  for (size_t i = 0; i < inverse_std_.size(); ++i) {
    log_std_sum_ += log_std[i];
    inverse_std_[i] = std::exp(-log_std[i]);
  }
}

void PolicyLoss::Rows(std::span<const float* const> samples, const float* outputs, float* gradient,
                      float* log_std_gradient, PpoSums& sums) {
  if (!discrete_) return GaussianBlock(samples, outputs, gradient, log_std_gradient, sums);
  for (const float* sample : samples) {
    DiscreteRow(sample, outputs, gradient, sums);
    outputs += outputs_stride_;
    gradient += outputs_stride_;
  }
}

void PolicyLoss::DiscreteRow(const float* sample, const float* outputs, float* gradient,
                             PpoSums& sums) {
  const float best = *std::max_element(outputs, outputs + num_outputs_);
  float sum = 0.0F;
  for (int i = 0; i < num_outputs_; ++i) sum += std::exp(outputs[i] - best);
  const float log_sum = best + std::log(sum);
  float entropy = 0.0F;
  for (int i = 0; i < num_outputs_; ++i) {
    const float log_probability = outputs[i] - log_sum;
    probabilities_[static_cast<size_t>(i)] = std::exp(log_probability);
    entropy -= probabilities_[static_cast<size_t>(i)] * log_probability;
  }
  const auto action = static_cast<int>(sample[columns_.obs]);
  const float log_ratio = outputs[action] - log_sum - sample[columns_.log_prob()];
  const float ratio = std::exp(log_ratio);
  const float advantage = (sample[columns_.advantage()] - advantages_.mean) * advantages_.scale;
  const float surrogate = advantage * ratio;
  const float clipped = advantage * std::clamp(ratio, 1.0F - hyper_.clip, 1.0F + hyper_.clip);
  // where the clipped term is the smaller, it is constant in the parameters
  const float weight = surrogate <= clipped ? -surrogate * share_ : 0.0F;
  const float entropy_weight = hyper_.entropy_coef * share_;
  for (int i = 0; i < num_outputs_; ++i) {
    const float p = probabilities_[static_cast<size_t>(i)];
    gradient[i] = -weight * p;
    if (entropy_weight != 0.0F && p > 0.0F) {
      gradient[i] += entropy_weight * p * (std::log(p) + entropy);
    }
  }
  gradient[action] += weight;
  sums.policy_loss -= std::min(surrogate, clipped);
  sums.entropy += entropy;
  sums.kl += ratio - 1.0F - log_ratio;
  sums.clipped += std::fabs(ratio - 1.0F) > hyper_.clip ? 1.0 : 0.0;
}

void PolicyLoss::GaussianBlock(std::span<const float* const> samples, const float* outputs,
                               float* gradient, float* log_std_gradient, PpoSums& sums) {
  for (size_t row = 0; row < samples.size(); ++row) {
    const float* sample = samples[row];
    float* action = actions_.data() + row;
    for (int i = 0; i < num_outputs_; ++i, action += max_rows_) *action = sample[columns_.obs + i];
    old_log_probs_.data()[row] = sample[columns_.log_prob()];
    row_advantages_.data()[row] =
        (sample[columns_.advantage()] - advantages_.mean) * advantages_.scale;
  }
  kernels_.transpose(outputs, max_rows_, outputs_stride_, means_.data(), max_rows_);
  const float constant = kHalfLogTwoPi * static_cast<float>(num_outputs_) + log_std_sum_;
  const GaussianSums block =
      gaussian_loss_({num_outputs_, inverse_std_.data(), -constant, hyper_.clip, share_,
                      hyper_.entropy_coef * share_},
                     {static_cast<int>(samples.size()), max_rows_, actions_.data(), means_.data(),
                      old_log_probs_.data(), row_advantages_.data()},
                     gradient_.data(), log_std_gradient);
  kernels_.transpose(gradient_.data(), outputs_stride_, max_rows_, gradient, outputs_stride_);
  sums.policy_loss += block.policy_loss;
  sums.entropy +=
      static_cast<double>(samples.size()) * (constant + 0.5F * static_cast<float>(num_outputs_));
  sums.kl += block.kl;
  sums.clipped += block.clipped;
}

float ValueLoss(const PpoHyper& hyper, const PpoColumns& columns, const float* sample, float value,
                PpoSums& sums) {
  const float target = sample[columns.target()];
  const float error = value - target;
  float slope = error;
  float squared = error * error;
  if (hyper.value_clip > 0.0F) {
    const float old_value = sample[columns.value()];
    const float change = value - old_value;
    const float clipped_error =
        old_value + std::clamp(change, -hyper.value_clip, hyper.value_clip) - target;
    if (squared < clipped_error * clipped_error) {
      squared = clipped_error * clipped_error;
      slope = std::fabs(change) <= hyper.value_clip ? clipped_error : 0.0F;
    }
  }
  sums.value_loss += 0.5 * squared;
  return hyper.value_coef / static_cast<float>(hyper.minibatch_size) * slope;
}

}  // namespace pyfastenv
