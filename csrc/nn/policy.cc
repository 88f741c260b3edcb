#include "nn/policy.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace pyfastenv {

namespace {

constexpr float kHalfLogTwoPi = 0.918938533F;
constexpr float kLogTwo = 0.693147181F;

// log(1 - tanh(u)^2) without cancellation
float LogTanhDerivative(float u) {
  const float magnitude = std::fabs(u);
  return 2.0F * (kLogTwo - magnitude - std::log1p(std::exp(-2.0F * magnitude)));
}

// The policy reads the components of obs from `begin` to `end`.
[[noreturn]] void ThrowNotFinite(const double* obs, int begin, int end) {
  const int bad = static_cast<int>(
      std::find_if_not(obs + begin, obs + end, [](double x) { return std::isfinite(x); }) - obs);
  if (bad == end) throw std::runtime_error("the policy gave a NaN or infinite action");
  throw std::runtime_error("the policy was given an observation whose component " +
                           std::to_string(bad) + " is NaN or infinite");
}

}  // namespace

Policy::Policy(Mlp mlp, PolicyOptions options)
    : mlp_(std::move(mlp)), options_(std::move(options)) {
  if (options_.row_size == 0) options_.row_size = mlp_.input_size();
  for (const float log_std : options_.log_std) std_.push_back(std::exp(log_std));
  for (size_t i = 0; i < options_.action_low.size(); ++i) {
    action_center_.push_back(0.5F * (options_.action_high[i] + options_.action_low[i]));
    action_half_.push_back(0.5F * (options_.action_high[i] - options_.action_low[i]));
  }
}

Policy::Scratch::Scratch(const Policy& policy)
    : action(static_cast<size_t>(policy.action_size())),
      env_action(action.size()),
      mlp_(policy.mlp_) {}

void Policy::Act(int policy, const double* obs, Random& random, Scratch& scratch) const {
  const Actor actor = {obs, &random, &scratch};
  Act(policy, {&actor, 1});
}

void Policy::Act(int policy, std::span<const Actor> actors) const {
  Mlp::Scratch* scratches[Mlp::kMaxInputs];
  const float* outputs[Mlp::kMaxInputs];
  for (size_t i = 0; i < actors.size(); ++i) {
    scratches[i] = &actors[i].scratch->mlp_;
    ReadObservation(policy, actors[i].obs, scratches[i]->input());
  }
  mlp_.Forward(policy, {scratches, actors.size()}, outputs);
  for (size_t i = 0; i < actors.size(); ++i) {
    if (!Choose(policy, outputs[i], *actors[i].random, *actors[i].scratch)) {
      const int begin = options_.row_begin;
      ThrowNotFinite(actors[i].obs, begin, begin + mlp_.input_size());
    }
  }
}

bool Policy::Choose(int policy, const float* outputs, Random& random, Scratch& scratch) const {
  switch (options_.distribution) {
    case Distribution::kCategorical:
      return ActCategorical(outputs, random, scratch);
    case Distribution::kGaussian:
    case Distribution::kTanhGaussian:
      return ActGaussian(policy, outputs, random, scratch);
    case Distribution::kDeterministic:
      return ActDeterministic(outputs, random, scratch);
  }
  return false;
}

void Policy::ReadObservation(int policy, const double* obs, float* input) const {
  const int size = mlp_.input_size();
  obs += options_.row_begin;
  for (int i = 0; i < size; ++i) input[i] = static_cast<float>(obs[i]);
  if (!options_.obs_mean.empty()) {
    const ptrdiff_t offset = static_cast<ptrdiff_t>(policy) * size;
    const float* mean = options_.obs_mean.data() + offset;
    const float* scale = options_.obs_scale.data() + offset;
    for (int i = 0; i < size; ++i) input[i] = (input[i] - mean[i]) * scale[i];
  }
  if (options_.obs_clip > 0.0F) {
    for (int i = 0; i < size; ++i) {
      input[i] = std::clamp(input[i], -options_.obs_clip, options_.obs_clip);
    }
  }
}

bool Policy::ActCategorical(const float* logits, Random& random, Scratch& scratch) const {
  const int n = num_actions();
  const float* best = std::max_element(logits, logits + n);
  // in float64, or rounding would now and then draw the last action however unlikely it is
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += std::exp(logits[i] - *best);
  if (!std::isfinite(sum)) return false;
  int index = static_cast<int>(best - logits);
  if (options_.epsilon >= 0.0F) {
    const double epsilon = options_.greedy ? 0.0 : double{options_.epsilon};
    const double uniform = options_.greedy ? 1.0 : random.NextDouble();
    // one below epsilon is, divided by it, uniform again
    if (uniform < epsilon) index = std::min(static_cast<int>(uniform / epsilon * n), n - 1);
    const double best_share = index == best - logits ? 1.0 - epsilon : 0.0;
    scratch.index = index;
    scratch.log_prob = static_cast<float>(std::log(epsilon / n + best_share));
    return true;
  }
  if (!options_.greedy) {
    double left = random.NextDouble() * sum;
    for (index = 0; index < n - 1; ++index) {
      left -= std::exp(logits[index] - *best);
      if (left < 0.0F) break;
    }
  }
  scratch.index = index;
  scratch.log_prob = logits[index] - *best - std::log(static_cast<float>(sum));
  return true;
}

bool Policy::ActGaussian(int policy, const float* outputs, Random& random, Scratch& scratch) const {
  const bool squash = options_.distribution == Distribution::kTanhGaussian;
  const int size = action_size();
  const ptrdiff_t offset = static_cast<ptrdiff_t>(policy) * size;
  float log_prob = -kHalfLogTwoPi * static_cast<float>(size);
  float check = 0.0F;
  for (int i = 0; i < size; ++i) {
    const auto index = static_cast<size_t>(i);
    float log_std;
    float std;
    if (std_.empty()) {
      log_std = std::clamp(outputs[size + i], options_.log_std_min, options_.log_std_max);
      std = std::exp(log_std);
    } else {
      log_std = options_.log_std[static_cast<size_t>(offset + i)];
      std = std_[static_cast<size_t>(offset + i)];
    }
    const float mean = outputs[i];
    float u = mean;
    if (!options_.greedy) u += std * static_cast<float>(random.StandardNormal());
    const float z = (u - mean) / std;  // of the rounded action, as whoever evaluates it will find
    log_prob -= 0.5F * z * z + log_std;
    if (squash) {
      log_prob -= LogTanhDerivative(u) + std::log(action_half_[index]);
      scratch.action[index] = action_center_[index] + action_half_[index] * std::tanh(u);
      scratch.env_action[index] = scratch.action[index];
    } else {
      scratch.action[index] = u;
      scratch.env_action[index] = options_.clip_actions ? std::clamp(u, options_.action_low[index],
                                                                     options_.action_high[index])
                                                        : u;
    }
    check += u * 0.0F;
  }
  scratch.log_prob = log_prob;
  return check == 0.0F && std::isfinite(log_prob);
}

bool Policy::ActDeterministic(const float* outputs, Random& random, Scratch& scratch) const {
  float check = 0.0F;
  for (int i = 0; i < action_size(); ++i) {
    const auto index = static_cast<size_t>(i);
    float action = std::tanh(outputs[i]);
    if (options_.noise > 0.0F && !options_.greedy) {
      action += options_.noise * static_cast<float>(random.StandardNormal());
    }
    check += action * 0.0F;
    action = action_center_[index] + action_half_[index] * std::clamp(action, -1.0F, 1.0F);
    scratch.action[index] = scratch.env_action[index] = action;
  }
  scratch.log_prob = 0.0F;
  return check == 0.0F;
}

}  // namespace pyfastenv
