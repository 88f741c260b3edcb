// A stochastic policy: observation normalisation, a network, a distribution over actions.
//
// Holds K policies of the same shape side by side. Immutable; any number of threads may act, each
// with its own Scratch. An action is a function of the policy, the observation and the random
// stream alone. float32 throughout, as in PyTorch; random numbers are drawn in float64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/mlp.h"
#include "npy/random.h"

namespace pyfastenv {

enum class Distribution {
  kCategorical,    // the outputs are logits
  kGaussian,       // the outputs are the mean (and the log-std); actions may be clipped for the env
  kTanhGaussian,   // tanh of a Gaussian, scaled to the bounds
  kDeterministic,  // tanh of the outputs, scaled to the bounds, plus noise, clipped
};

struct PolicyOptions {
  Distribution distribution = Distribution::kGaussian;
  bool greedy = false;  // the most likely action (the mean) instead of a sample

  // Box actions; (action_size) each
  std::vector<float> action_low, action_high;
  bool clip_actions = true;    // kGaussian: the environment gets the clipped action
  std::vector<float> log_std;  // (K, action_size); empty: the network's second half
  float log_std_min = -20.0F;  // of a network's log-std
  float log_std_max = 2.0F;
  float noise = 0.0F;  // kDeterministic: std, in halves of the bounds' width
  // kCategorical: the probability of a uniform action in place of the best; below 0: actions are
  // drawn by their probabilities
  float epsilon = -1.0F;
  std::vector<float> obs_mean;   // (K, inputs); empty: observations as they are
  std::vector<float> obs_scale;  // (K, inputs): reciprocal standard deviations
  float obs_clip = 0.0F;         // normalised observations' bound; 0: none

  int row_begin = 0;  // where in an environment's observation the network's inputs begin
  int row_size = 0;   // of such an observation; 0: the inputs are all of it
};

class Policy {
 public:
  Policy(Mlp mlp, PolicyOptions options);

  const Mlp& mlp() const { return mlp_; }
  int num_policies() const { return mlp_.num_networks(); }
  /// The size of the environments' observations, of which the network may see a part.
  int obs_size() const { return options_.row_size; }
  bool discrete() const { return options_.distribution == Distribution::kCategorical; }
  /// The size of a Box's actions.
  int action_size() const { return static_cast<int>(options_.action_low.size()); }
  int num_actions() const { return mlp_.output_size(); }

  class Scratch {
   public:
    explicit Scratch(const Policy& policy);

    // what Act chose
    int64_t index = 0;              // of a discrete action
    std::vector<float> action;      // (action_size) as drawn
    std::vector<float> env_action;  // (action_size) what the environment is to be given
    float log_prob = 0.0F;          // of `index` or `action`; 0 where the policy is deterministic

   private:
    friend class Policy;
    Mlp::Scratch mlp_;
  };

  /// Chooses an action. Throws std::runtime_error if it or the observation is not finite.
  void Act(int policy, const double* obs, Random& random, Scratch& scratch) const;

  /// One of several that act at once.
  struct Actor {
    const double* obs = nullptr;
    Random* random = nullptr;
    Scratch* scratch = nullptr;
  };
  /// Acts for each of them (Mlp::kMaxInputs at most): the same, bit for bit, in less time.
  void Act(int policy, std::span<const Actor> actors) const;

 private:
  void ReadObservation(int policy, const double* obs, float* input) const;
  // these return whether the action is finite
  bool Choose(int policy, const float* outputs, Random& random, Scratch& scratch) const;
  bool ActCategorical(const float* logits, Random& random, Scratch& scratch) const;
  bool ActGaussian(int policy, const float* outputs, Random& random, Scratch& scratch) const;
  bool ActDeterministic(const float* outputs, Random& random, Scratch& scratch) const;

  Mlp mlp_;
  PolicyOptions options_;
  std::vector<float> std_;                          // exp(log_std), where that is given
  std::vector<float> action_center_, action_half_;  // of the bounds
};

}  // namespace pyfastenv
