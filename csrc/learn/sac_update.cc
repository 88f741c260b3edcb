#include "learn/sac_update.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "learn/array_size.h"
#include "learn/bf16_network.h"
#include "learn/f32_network.h"

namespace pyfastenv {

namespace {

/// The index in a row-major (rows, columns) array.
size_t Index(int row, int columns, int column) {
  return ArraySize(row, columns) + static_cast<size_t>(column);
}

}  // namespace

class SacUpdate::Seed {
 public:
  virtual ~Seed() = default;

  /// The steps of the call at hand.
  virtual void Run() = 0;
};

// The memory of one seed, and its steps, in Bf16Network or F32Network.
template <class Network>
class SacUpdate::SeedIn : public SacUpdate::Seed {
 public:
  SeedIn(SacUpdate& owner, int number, Network network);

  void Run() override;

 private:
  using Parameters = typename Network::Parameters;
  using Pass = typename Network::Pass;

  void Step(const float* rows, const float* noise, int64_t step, float* metrics);
  void PackCritic(int i);
  void PackPolicyAndTargets();
  void FillCriticInputs(const float* rows, int obs_column, const float* from,
                        ptrdiff_t action_stride);
  void WriteOutputGradient(Pass& pass, const float* gradient, int size);

  SacUpdate& owner;
  const int k;
  const int batch, padded_batch;
  const int obs_size, action_size, width;

  Network network;
  Parameters policy;
  Parameters critic[2], target[2];
  Pass policy_pass;
  Pass critic_pass[2];  // the first one holds the inputs of both
  std::vector<float> actions, spread, inside, log_probs, targets, policy_values[2], by_actions,
      by_outputs, column;
};

template <class Network>
SacUpdate::SeedIn<Network>::SeedIn(SacUpdate& o, int number, Network n)
    : owner(o),
      k(number),
      batch(o.options_.batch_size),
      padded_batch(Padded(batch, Network::kRows)),
      obs_size(o.options_.obs_size),
      action_size(o.options_.action_size),
      width(2 * obs_size + action_size + 2),
      network(std::move(n)),
      policy(network, o.policy_layers_, PassUse::kBackward),
      critic{{network, o.critic_layers_, PassUse::kBackwardToInputs},
             {network, o.critic_layers_, PassUse::kBackwardToInputs}},
      target{{network, o.critic_layers_, PassUse::kForward},
             {network, o.critic_layers_, PassUse::kForward}},
      policy_pass(network, o.policy_layers_, Activation::kRelu, 2 * batch),
      critic_pass{{network, o.critic_layers_, Activation::kRelu, batch},
                  {network, o.critic_layers_, Activation::kRelu, batch}} {
  const auto floats = [](int rows, int columns) {
    return std::vector<float>(ArraySize(rows, columns));
  };
  actions = floats(2 * batch, action_size);
  spread = actions;
  inside = actions;
  log_probs = floats(2 * batch, 1);
  targets = floats(batch, 1);
  for (auto& values : policy_values) values = targets;
  column = targets;
  by_actions = floats(batch, action_size);
  by_outputs = floats(batch, 2 * action_size);
}

template <class Network>
void SacUpdate::SeedIn<Network>::PackCritic(int i) {
  critic[i].Pack(owner.vectors_.critic.parameters, 2 * k + i);
}

/// Packs the parameters that a step takes as the step before, or whoever else, has left them.
template <class Network>
void SacUpdate::SeedIn<Network>::PackPolicyAndTargets() {
  const SacVectors& vectors = owner.vectors_;
  policy.Pack(vectors.policy.parameters, k);
  for (int i = 0; i < 2; ++i) target[i].Pack(vectors.target, 2 * k + i);
}

template <class Network>
void SacUpdate::SeedIn<Network>::FillCriticInputs(const float* rows, int obs_column,
                                                  const float* from, ptrdiff_t action_stride) {
  for (int b = 0; b < batch; ++b) {
    critic_pass[0].WriteInput(b, 0, rows + static_cast<ptrdiff_t>(b) * width + obs_column,
                              obs_size);
    critic_pass[0].WriteInput(b, obs_size, from + b * action_stride, action_size);
  }
}

template <class Network>
void SacUpdate::SeedIn<Network>::WriteOutputGradient(Pass& pass, const float* gradient, int size) {
  for (int b = 0; b < batch; ++b) pass.WriteOutputGradient(b, gradient + b * size, size);
}

template <class Network>
void SacUpdate::SeedIn<Network>::Step(const float* rows, const float* noise, int64_t step,
                                      float* metrics) {
  const SacHyper& hyper = owner.hyper_;
  const SacVectors& vectors = owner.vectors_;
  const FlatLayers& critic_layers = owner.critic_layers_;
  const int next_obs = obs_size + action_size;
  const int q_stride = critic_pass[0].output_stride();
  const float share = 1.0F / static_cast<float>(batch);
  const int num_seeds = owner.options_.num_seeds;
  const auto adam_step = [&](float lr) {
    return MakeAdamStep(lr, hyper.beta1, hyper.beta2, hyper.eps, step);
  };
  const float* log_temperature =
      hyper.learn_temperature ? vectors.policy.parameters + owner.policy_size(false) + k : nullptr;
  const float temperature =
      std::exp(log_temperature != nullptr ? *log_temperature : vectors.log_temperature[k]);

  PackPolicyAndTargets();

  // one pass of the policy for both its uses
  for (int half = 0; half < 2; ++half) {
    const float* obs = rows + (half == 0 ? 0 : next_obs);
    for (int b = 0; b < batch; ++b) {
      policy_pass.WriteInput(half * batch + b, 0, obs + static_cast<ptrdiff_t>(b) * width,
                             obs_size);
    }
  }
  const float* policy_outputs = policy_pass.Forward(policy, Padded(2 * batch, Network::kRows));
  owner.kernels_.squash(policy_outputs, policy_pass.output_stride(), noise, 2 * batch, action_size,
                        hyper.log_std_min, hyper.log_std_max, actions.data(), spread.data(),
                        inside.data(), log_probs.data());

  // the critics' targets
  FillCriticInputs(rows, next_obs, actions.data() + static_cast<ptrdiff_t>(batch) * action_size,
                   action_size);
  for (int i = 0; i < 2; ++i) {
    const float* values = critic_pass[0].Forward(target[i], padded_batch);
    for (int b = 0; b < batch; ++b) {
      const float value = values[static_cast<ptrdiff_t>(b) * q_stride];
      const auto at = static_cast<size_t>(b);
      if (i == 0) {
        column[at] = value;
        continue;
      }
      const float* ends = rows + static_cast<ptrdiff_t>(b) * width + width - 2;
      const float soft = std::min(column[at], value) - temperature * log_probs[Index(1, batch, b)];
      targets[at] = ends[0] + hyper.gamma * ends[1] * soft;
    }
  }

  // the critics
  FillCriticInputs(rows, 0, rows + obs_size, width);
  double squares = 0.0;
  for (int i = 0; i < 2; ++i) {
    const float* values = critic_pass[i].Forward(critic[i], padded_batch, &critic_pass[0]);
    for (int b = 0; b < batch; ++b) {
      const auto at = static_cast<size_t>(b);
      const float error = values[static_cast<ptrdiff_t>(b) * q_stride] - targets[at];
      squares += error * error;
      column[at] = error * share;
    }
    WriteOutputGradient(critic_pass[i], column.data(), 1);
    critic_pass[i].Improve(critic[i], padded_batch, 2 * k + i, vectors.critic,
                           adam_step(hyper.critic_lr), &critic_pass[0]);
    PackCritic(i);
  }

  // the policy, by the smaller critic's value
  FillCriticInputs(rows, 0, actions.data(), action_size);
  for (int i = 0; i < 2; ++i) {
    const float* values = critic_pass[i].Forward(critic[i], padded_batch, &critic_pass[0]);
    for (int b = 0; b < batch; ++b) {
      policy_values[i][static_cast<size_t>(b)] = values[static_cast<ptrdiff_t>(b) * q_stride];
    }
  }
  std::fill(by_actions.begin(), by_actions.end(), 0.0F);
  double value = 0.0;
  const int dx_stride = critic_pass[0].input_stride();
  for (int i = 0; i < 2; ++i) {
    for (int b = 0; b < batch; ++b) {
      const auto at = static_cast<size_t>(b);
      const bool first_is_smaller = policy_values[0][at] <= policy_values[1][at];
      const bool mine = first_is_smaller == (i == 0);
      column[at] = mine ? -share : 0.0F;
      if (mine) value += policy_values[i][at];
    }
    WriteOutputGradient(critic_pass[i], column.data(), 1);
    const float* by_inputs = critic_pass[i].InputGradient(critic[i], padded_batch);
    for (int b = 0; b < batch; ++b) {
      const float* dx = by_inputs + static_cast<ptrdiff_t>(b) * dx_stride + obs_size;
      for (int a = 0; a < action_size; ++a) {
        by_actions[Index(b, action_size, a)] += dx[a];
      }
    }
  }
  const float weight = temperature * share;
  double log_prob = 0.0;
  for (int b = 0; b < batch; ++b) {
    log_prob += log_probs[static_cast<size_t>(b)];
    for (int a = 0; a < action_size; ++a) {
      const size_t at = Index(b, action_size, a);
      const float action = actions[at];
      const float by_mean = by_actions[at] * (1.0F - action * action) + 2.0F * weight * action;
      const size_t out = Index(b, 2 * action_size, a);
      by_outputs[out] = by_mean;
      by_outputs[out + static_cast<size_t>(action_size)] =
          inside[at] * (by_mean * spread[at] - weight);
    }
  }
  WriteOutputGradient(policy_pass, by_outputs.data(), 2 * action_size);
  policy_pass.Improve(policy, padded_batch, k, vectors.policy, adam_step(hyper.policy_lr));

  // temperature and targets
  const double entropy = -log_prob / batch;
  if (log_temperature != nullptr) {
    const auto gradient = static_cast<float>(entropy - hyper.target_entropy);
    const size_t at = owner.policy_size(false) + static_cast<size_t>(k);
    owner.train_.adam(adam_step(hyper.policy_lr), &gradient, 1, vectors.policy.parameters + at,
                      vectors.policy.mean + at, vectors.policy.square + at);
  }
  for (int i = 0; i < 2; ++i) {
    const int number = 2 * k + i;
    const auto follow = [&](size_t at, int count) {
      owner.kernels_.follow(vectors.target + at, vectors.critic.parameters + at,
                            static_cast<size_t>(count), hyper.tau);
    };
    for (const FlatLayer& layer : critic_layers) {
      follow(layer.weights_of(number), layer.in * layer.out);
      follow(layer.biases_of(number), layer.out);
      if (layer.norm != 0) follow(layer.norm_of(number), 2 * layer.out);
    }
  }
  if (metrics == nullptr) return;
  const double values[kNumMetrics] = {squares / (2.0 * batch),
                                      -value / batch - temperature * entropy, entropy, temperature,
                                      value / batch};
  for (int i = 0; i < kNumMetrics; ++i) metrics[i * num_seeds + k] = static_cast<float>(values[i]);
}

template <class Network>
void SacUpdate::SeedIn<Network>::Run() {
  const SacOptions& o = owner.options_;
  const typename Network::Section section(network);
  for (int i = 0; i < 2; ++i) PackCritic(i);
  for (int i = 0; i < owner.count_; ++i) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(i) * o.num_seeds + k;
    Step(owner.rows_ + at * batch * width, owner.noise_ + at * 2 * batch * action_size,
         owner.step_ + i + 1, i == owner.count_ - 1 ? owner.metrics_ : nullptr);
  }
}

SacUpdate::SacUpdate(const SacOptions& options)
    : options_(options),
      kernels_(BestGaussianKernels()),
      train_(BestTrainKernels()),
      parallel_(std::clamp(options.num_threads, 1, options.num_seeds)) {
  if (options.bfloat16) {
    AddSeeds<Bf16Network>([] { return Bf16Network(); });
  } else {
    const int num_threads = std::max(1, options.num_threads / options.num_seeds);
    AddSeeds<F32Network>([&] { return F32Network(num_threads); });
  }
}

template <class Network, class MakeNetwork>
void SacUpdate::AddSeeds(const MakeNetwork& make_network) {
  const auto layers = [&](int num_inputs, int num_outputs, int num_networks) {
    std::vector<int> sizes = {num_inputs};
    sizes.insert(sizes.end(), options_.hidden_sizes.begin(), options_.hidden_sizes.end());
    sizes.push_back(num_outputs);
    return Network::MakeLayers(sizes, num_networks, options_.layer_norm);
  };
  const int num_inputs = options_.obs_size + options_.action_size;
  policy_layers_ = layers(options_.obs_size, 2 * options_.action_size, options_.num_seeds);
  critic_layers_ = layers(num_inputs, 1, 2 * options_.num_seeds);
  for (int k = 0; k < options_.num_seeds; ++k) {
    seeds_.push_back(std::make_unique<SeedIn<Network>>(*this, k, make_network()));
  }
}

SacUpdate::~SacUpdate() = default;

size_t SacUpdate::policy_size(bool learn_temperature) const {
  const size_t size = FlatSize(policy_layers_, options_.num_seeds);
  return size + (learn_temperature ? static_cast<size_t>(options_.num_seeds) : 0);
}

size_t SacUpdate::critic_size() const { return FlatSize(critic_layers_, 2 * options_.num_seeds); }

void SacUpdate::Run(const float* rows, const float* noise, int count, int64_t step,
                    const SacHyper& hyper, const SacVectors& vectors, float* metrics) {
  rows_ = rows;
  noise_ = noise;
  count_ = count;
  step_ = step;
  hyper_ = hyper;
  vectors_ = vectors;
  metrics_ = metrics;
  parallel_.Run(options_.num_seeds,
                [this](int /*worker*/, int seed) { seeds_[static_cast<size_t>(seed)]->Run(); });
}

}  // namespace pyfastenv
