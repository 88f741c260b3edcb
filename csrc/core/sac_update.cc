#include "core/sac_update.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/mlp.h"

namespace pyfastenv {

namespace {

/// bfloat16 numbers, zero at first.
class Bf16Matrix {
 public:
  Bf16Matrix() = default;
  Bf16Matrix(int rows, int columns)
      : floats_((static_cast<size_t>(rows) * static_cast<size_t>(columns) + 1) / 2) {}
  uint16_t* data() { return reinterpret_cast<uint16_t*>(floats_.data()); }
  const uint16_t* data() const { return reinterpret_cast<const uint16_t*>(floats_.data()); }

 private:
  AlignedFloats floats_;
};

uint16_t Round(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (x != x) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1U)) >> 16);
}

float Widen(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

/// Writes numbers in two parts, x = high + low, `distance` apart.
void Split(const float* x, int size, int distance, uint16_t* out) {
  for (int i = 0; i < size; ++i) {
    out[i] = Round(x[i]);
    out[distance + i] = Round(x[i] - Widen(out[i]));
  }
}

AlignedFloats Floats(int rows, int columns) {
  return AlignedFloats(static_cast<size_t>(rows) * static_cast<size_t>(columns));
}

/// A network's parameters as right-hand factors.
struct Packed {
  std::vector<Bf16Matrix> weights, transposed;
  std::vector<AlignedFloats> biases;
};

}  // namespace

// The memory of one seed, and its step. All sizes are padded; of a network's pass, `inputs` and the
// hidden outputs are left-hand factors.
struct SacUpdate::Seed {
  Seed(SacUpdate& owner, int number);

  void Step(const float* rows, const float* noise, int64_t step, float* metrics);
  void PackAll();

 private:
  struct Vectors {
    float* parameters;
    float* mean;
    float* square;
  };

  Packed MakePacked(const Layers& layers, bool backward, bool to_inputs) const;
  void Pack(const Layers& layers, const float* flat, int network, Packed& packed);
  const float* Forward(const Layers& layers, const Packed& packed, const Bf16Matrix& inputs,
                       std::vector<Bf16Matrix>& hidden, int rows);
  /// From output_gradient_ down; with `vectors`, each layer is improved on the way.
  void Backward(const Layers& layers, const Packed& packed, const Bf16Matrix& inputs,
                const std::vector<Bf16Matrix>& hidden, int network, const Vectors* vectors,
                float lr);
  void Improve(const Layer& layer, bool first, int network, const Vectors& vectors, float lr);
  AdamStep MakeAdamStep(float lr) const;
  void FillCriticInputs(const float* rows, int obs_column, const float* actions,
                        ptrdiff_t action_stride);
  void SetOutputGradient(const float* values, int rows, int stride, int size);

  SacUpdate& owner;
  const int k;
  const int batch, padded_batch;
  const int obs_size, action_size, width;
  int64_t adam_step = 0;

  Packed policy, critic[2], target[2];
  Bf16Matrix policy_inputs, critic_inputs;
  std::vector<Bf16Matrix> policy_hidden, critic_hidden[2];
  AlignedFloats outputs;                   // float32, of a last layer
  Bf16Matrix output_gradient_, back[2];    // of the rows at hand
  Bf16Matrix transposed, packed_gradient;  // factors of a weight gradient
  AlignedFloats weight_gradient, bias_gradient, input_gradient, twice;
  std::vector<float> actions, spread, inside, log_probs, targets, opinions[2], by_actions,
      by_outputs, column;
};

SacUpdate::Seed::Seed(SacUpdate& o, int number)
    : owner(o),
      k(number),
      batch(o.options_.batch_size),
      padded_batch(Padded(batch, kTile)),
      obs_size(o.options_.obs_size),
      action_size(o.options_.action_size),
      width(2 * obs_size + action_size + 2) {
  const Layers& p = owner.policy_layers_;
  const Layers& c = owner.critic_layers_;
  policy = MakePacked(p, true, false);
  for (int i = 0; i < 2; ++i) {
    critic[i] = MakePacked(c, true, true);
    target[i] = MakePacked(c, false, false);
  }
  policy_inputs = Bf16Matrix(2 * padded_batch, p[0].padded_in);
  critic_inputs = Bf16Matrix(padded_batch, c[0].padded_in);
  int widest = kTile;
  int largest = 0;
  for (const Layers* layers : {&p, &c}) {
    for (const Layer& layer : *layers) {
      widest = std::max({widest, layer.padded_in, layer.padded_out, layer.padded_inputs});
      largest = std::max(largest, layer.padded_in * layer.padded_out);
    }
  }
  for (size_t i = 0; i + 1 < p.size(); ++i) {
    policy_hidden.emplace_back(2 * padded_batch, p[i].padded_out);
    for (auto& hidden : critic_hidden) hidden.emplace_back(padded_batch, c[i].padded_out);
  }
  outputs = Floats(2 * padded_batch, std::max(p.back().padded_out, c.back().padded_out));
  output_gradient_ = Bf16Matrix(padded_batch, p.back().padded_out);
  for (Bf16Matrix& matrix : back) matrix = Bf16Matrix(padded_batch, widest);
  transposed = Bf16Matrix(widest, padded_batch);
  packed_gradient = Bf16Matrix(padded_batch, widest);
  weight_gradient = Floats(1, largest);
  bias_gradient = Floats(1, widest);
  input_gradient = Floats(padded_batch, c[0].padded_inputs);
  twice = Floats(2 * std::max(p[0].in, c[0].in), p[0].out);
  const auto floats = [](int rows, int columns) {
    return std::vector<float>(static_cast<size_t>(rows) * static_cast<size_t>(columns));
  };
  actions = floats(2 * padded_batch, action_size);
  spread = actions;
  inside = actions;
  log_probs = floats(2 * padded_batch, 1);
  targets = floats(batch, 1);
  for (auto& values : opinions) values = targets;
  column = targets;
  by_actions = floats(batch, action_size);
  by_outputs = floats(batch, 2 * action_size);
}

Packed SacUpdate::Seed::MakePacked(const Layers& layers, bool backward, bool to_inputs) const {
  Packed packed;
  for (const Layer& layer : layers) {
    packed.weights.emplace_back(layer.padded_in, layer.padded_out);
    packed.biases.push_back(Floats(1, layer.padded_out));
    const bool first = packed.biases.size() == 1;
    if (backward && (to_inputs || !first)) {
      packed.transposed.emplace_back(layer.padded_out, layer.padded_inputs);
    } else {
      packed.transposed.emplace_back();
    }
  }
  return packed;
}

void SacUpdate::Seed::Pack(const Layers& layers, const float* flat, int network, Packed& packed) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    const size_t size = static_cast<size_t>(layer.in) * static_cast<size_t>(layer.out);
    const float* weights = flat + layer.weights + static_cast<size_t>(network) * size;
    if (i == 0) {
      std::copy_n(weights, size, twice.data());
      std::copy_n(weights, size, twice.data() + size);
      owner.amx_.pack(twice.data(), 2 * layer.in, layer.out, packed.weights[i].data());
    } else {
      owner.amx_.pack(weights, layer.in, layer.out, packed.weights[i].data());
    }
    if (packed.transposed[i].data() != nullptr) {
      owner.amx_.pack_transposed(weights, layer.in, layer.out, packed.transposed[i].data());
    }
    std::copy_n(flat + layer.biases + static_cast<size_t>(network * layer.out), layer.out,
                packed.biases[i].data());
  }
}

void SacUpdate::Seed::PackAll() {
  const SacVectors& vectors = owner.vectors_;
  Pack(owner.policy_layers_, vectors.policy, k, policy);
  for (int i = 0; i < 2; ++i) {
    Pack(owner.critic_layers_, vectors.critic, 2 * k + i, critic[i]);
    Pack(owner.critic_layers_, vectors.target, 2 * k + i, target[i]);
  }
}

const float* SacUpdate::Seed::Forward(const Layers& layers, const Packed& packed,
                                      const Bf16Matrix& inputs, std::vector<Bf16Matrix>& hidden,
                                      int rows) {
  const uint16_t* x = inputs.data();
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    owner.amx_.forward(x, packed.weights[i].data(), packed.biases[i].data(), rows,
                       layers[i].padded_in, layers[i].padded_out, hidden[i].data());
    x = hidden[i].data();
  }
  const Layer& last = layers.back();
  owner.amx_.forward_last(x, packed.weights.back().data(), packed.biases.back().data(), rows,
                          last.padded_in, last.padded_out, outputs.data());
  return outputs.data();
}

void SacUpdate::Seed::Backward(const Layers& layers, const Packed& packed, const Bf16Matrix& inputs,
                               const std::vector<Bf16Matrix>& hidden, int network,
                               const Vectors* vectors, float lr) {
  const AmxKernels& amx = owner.amx_;
  const uint16_t* dy = output_gradient_.data();
  for (size_t i = layers.size(); i-- > 0;) {
    const Layer& layer = layers[i];
    if (vectors != nullptr) {
      const uint16_t* x = i == 0 ? inputs.data() : hidden[i - 1].data();
      amx.transpose(x, padded_batch, layer.padded_in, transposed.data());
      amx.pack_samples(dy, padded_batch, layer.padded_out, packed_gradient.data());
      amx.gradient(transposed.data(), packed_gradient.data(), padded_batch, layer.padded_in,
                   layer.padded_out, weight_gradient.data());
      amx.column_sums(dy, padded_batch, layer.padded_out, bias_gradient.data());
      Improve(layer, i == 0, network, *vectors, lr);
    }
    if (i > 0) {
      uint16_t* dx = back[i % 2].data();
      amx.backward(dy, packed.transposed[i].data(), hidden[i - 1].data(), padded_batch,
                   layer.padded_in, layer.padded_out, dx);
      dy = dx;
    } else if (packed.transposed[0].data() != nullptr && vectors == nullptr) {
      amx.forward_last(dy, packed.transposed[0].data(), nullptr, padded_batch, layer.padded_out,
                       layer.padded_inputs, input_gradient.data());
    }
  }
}

AdamStep SacUpdate::Seed::MakeAdamStep(float lr) const {
  const SacHyper& hyper = owner.hyper_;
  const auto count = static_cast<double>(adam_step);
  AdamStep step{};
  step.lr = static_cast<float>(lr / (1.0 - std::pow(hyper.beta1, count)));
  step.beta1 = hyper.beta1;
  step.beta2 = hyper.beta2;
  step.root_correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(hyper.beta2, count)));
  step.eps = hyper.eps;
  step.grad_scale = 1.0F;
  return step;
}

void SacUpdate::Seed::Improve(const Layer& layer, bool first, int network, const Vectors& vectors,
                              float lr) {
  const AdamStep step = MakeAdamStep(lr);
  const auto adam = [&](const float* gradient, size_t size, size_t at) {
    owner.train_.adam(step, gradient, size, vectors.parameters + at, vectors.mean + at,
                      vectors.square + at);
  };
  const auto in = static_cast<size_t>(layer.in);
  const auto out = static_cast<size_t>(layer.out);
  const auto stride = static_cast<size_t>(layer.padded_out);
  const size_t at = layer.weights + static_cast<size_t>(network) * in * out;
  float* gradient = weight_gradient.data();
  if (first) {  // the inputs stand there in two parts
    for (size_t i = 0; i < in * stride; ++i) gradient[i] += gradient[in * stride + i];
  }
  if (stride == out) {
    adam(gradient, in * out, at);
  } else {
    for (size_t row = 0; row < in; ++row) adam(gradient + row * stride, out, at + row * out);
  }
  adam(bias_gradient.data(), out, layer.biases + static_cast<size_t>(network) * out);
}

void SacUpdate::Seed::FillCriticInputs(const float* rows, int obs_column, const float* from,
                                       ptrdiff_t action_stride) {
  const Layer& layer = owner.critic_layers_[0];
  for (int b = 0; b < batch; ++b) {
    uint16_t* out = critic_inputs.data() + static_cast<ptrdiff_t>(b) * layer.padded_in;
    Split(rows + static_cast<ptrdiff_t>(b) * width + obs_column, obs_size, layer.in, out);
    Split(from + b * action_stride, action_size, layer.in, out + obs_size);
  }
}

void SacUpdate::Seed::SetOutputGradient(const float* values, int rows, int stride, int size) {
  std::memset(output_gradient_.data(), 0,
              static_cast<size_t>(padded_batch) * static_cast<size_t>(stride) * sizeof(uint16_t));
  for (int b = 0; b < rows; ++b) {
    uint16_t* out = output_gradient_.data() + static_cast<ptrdiff_t>(b) * stride;
    for (int i = 0; i < size; ++i) out[i] = Round(values[b * size + i]);
  }
}

void SacUpdate::Seed::Step(const float* rows, const float* noise, int64_t step, float* metrics) {
  const SacHyper& hyper = owner.hyper_;
  const SacVectors& vectors = owner.vectors_;
  const Layers& policy_layers = owner.policy_layers_;
  const Layers& critic_layers = owner.critic_layers_;
  const int next_obs = obs_size + action_size;
  const int q_stride = critic_layers.back().padded_out;
  const float share = 1.0F / static_cast<float>(batch);
  const int num_seeds = owner.options_.num_seeds;
  adam_step = step;
  float* log_temperature =
      hyper.learn_temperature ? vectors.policy + owner.policy_size(false) + k : nullptr;
  const float temperature =
      std::exp(log_temperature != nullptr ? *log_temperature : vectors.log_temperature[k]);

  // one pass of the policy for both its uses
  const Layer& policy_first = policy_layers[0];
  for (int half = 0; half < 2; ++half) {
    for (int b = 0; b < batch; ++b) {
      uint16_t* out =
          policy_inputs.data() + static_cast<ptrdiff_t>(half * batch + b) * policy_first.padded_in;
      Split(rows + static_cast<ptrdiff_t>(b) * width + (half == 0 ? 0 : next_obs), obs_size,
            policy_first.in, out);
    }
  }
  const float* policy_outputs =
      Forward(policy_layers, policy, policy_inputs, policy_hidden, Padded(2 * batch, kTile));
  owner.amx_.squash(policy_outputs, policy_layers.back().padded_out, noise, 2 * batch, action_size,
                    hyper.log_std_min, hyper.log_std_max, actions.data(), spread.data(),
                    inside.data(), log_probs.data());

  // the critics' targets
  FillCriticInputs(rows, next_obs, actions.data() + static_cast<ptrdiff_t>(batch) * action_size,
                   action_size);
  for (int i = 0; i < 2; ++i) {
    const float* values =
        Forward(critic_layers, target[i], critic_inputs, critic_hidden[0], padded_batch);
    for (int b = 0; b < batch; ++b) {
      const float value = values[static_cast<ptrdiff_t>(b) * q_stride];
      const auto at = static_cast<size_t>(b);
      if (i == 0) {
        column[at] = value;
        continue;
      }
      const float* ends = rows + static_cast<ptrdiff_t>(b) * width + width - 2;
      const float soft =
          std::min(column[at], value) - temperature * log_probs[static_cast<size_t>(batch + b)];
      targets[at] = ends[0] + hyper.gamma * ends[1] * soft;
    }
  }

  // the critics
  FillCriticInputs(rows, 0, rows + obs_size, width);
  const Vectors critic_vectors{vectors.critic, vectors.critic_mean, vectors.critic_square};
  double squares = 0.0;
  for (int i = 0; i < 2; ++i) {
    const float* values =
        Forward(critic_layers, critic[i], critic_inputs, critic_hidden[i], padded_batch);
    for (int b = 0; b < batch; ++b) {
      const auto at = static_cast<size_t>(b);
      const float error = values[static_cast<ptrdiff_t>(b) * q_stride] - targets[at];
      squares += error * error;
      column[at] = error * share;
    }
    SetOutputGradient(column.data(), batch, q_stride, 1);
    Backward(critic_layers, critic[i], critic_inputs, critic_hidden[i], 2 * k + i, &critic_vectors,
             hyper.critic_lr);
    Pack(critic_layers, vectors.critic, 2 * k + i, critic[i]);
  }

  // the policy, by the smaller critic's opinion
  FillCriticInputs(rows, 0, actions.data(), action_size);
  for (int i = 0; i < 2; ++i) {
    const float* values =
        Forward(critic_layers, critic[i], critic_inputs, critic_hidden[i], padded_batch);
    for (int b = 0; b < batch; ++b) {
      opinions[i][static_cast<size_t>(b)] = values[static_cast<ptrdiff_t>(b) * q_stride];
    }
  }
  std::fill(by_actions.begin(), by_actions.end(), 0.0F);
  double opinion = 0.0;
  const int dx_stride = critic_layers[0].padded_inputs;
  for (int i = 0; i < 2; ++i) {
    for (int b = 0; b < batch; ++b) {
      const auto at = static_cast<size_t>(b);
      const bool first_is_smaller = opinions[0][at] <= opinions[1][at];
      const bool mine = first_is_smaller == (i == 0);
      column[at] = mine ? -share : 0.0F;
      if (mine) opinion += opinions[i][at];
    }
    SetOutputGradient(column.data(), batch, q_stride, 1);
    Backward(critic_layers, critic[i], critic_inputs, critic_hidden[i], 2 * k + i, nullptr, 0.0F);
    for (int b = 0; b < batch; ++b) {
      const float* dx = input_gradient.data() + static_cast<ptrdiff_t>(b) * dx_stride + obs_size;
      for (int a = 0; a < action_size; ++a) {
        by_actions[static_cast<size_t>(b * action_size + a)] += dx[a];
      }
    }
  }
  const float weight = temperature * share;
  double log_prob = 0.0;
  for (int b = 0; b < batch; ++b) {
    log_prob += log_probs[static_cast<size_t>(b)];
    for (int a = 0; a < action_size; ++a) {
      const auto at = static_cast<size_t>(b * action_size + a);
      const float action = actions[at];
      const float by_mean = by_actions[at] * (1.0F - action * action) + 2.0F * weight * action;
      const auto out = static_cast<size_t>(b * 2 * action_size + a);
      by_outputs[out] = by_mean;
      by_outputs[out + static_cast<size_t>(action_size)] =
          inside[at] * (by_mean * spread[at] - weight);
    }
  }
  const Vectors policy_vectors{vectors.policy, vectors.policy_mean, vectors.policy_square};
  SetOutputGradient(by_outputs.data(), batch, policy_layers.back().padded_out, 2 * action_size);
  Backward(policy_layers, policy, policy_inputs, policy_hidden, k, &policy_vectors,
           hyper.policy_lr);
  Pack(policy_layers, vectors.policy, k, policy);

  // temperature and targets
  const double entropy = -log_prob / batch;
  if (log_temperature != nullptr) {
    const auto gradient = static_cast<float>(entropy - hyper.target_entropy);
    const size_t at = owner.policy_size(false) + static_cast<size_t>(k);
    owner.train_.adam(MakeAdamStep(hyper.policy_lr), &gradient, 1, vectors.policy + at,
                      vectors.policy_mean + at, vectors.policy_square + at);
  }
  for (int i = 0; i < 2; ++i) {
    for (const Layer& layer : critic_layers) {
      const auto network = static_cast<size_t>(2 * k + i);
      const auto out = static_cast<size_t>(layer.out);
      const size_t size = static_cast<size_t>(layer.in) * out;
      const auto follow = [&](size_t at, size_t count) {
        owner.amx_.follow(vectors.target + at, vectors.critic + at, count, hyper.tau);
      };
      follow(layer.weights + network * size, size);
      follow(layer.biases + network * out, out);
    }
    Pack(critic_layers, vectors.target, 2 * k + i, target[i]);
  }
  if (metrics == nullptr) return;
  const double values[kNumMetrics] = {squares / (2.0 * batch),
                                      -opinion / batch - temperature * entropy, entropy,
                                      temperature, opinion / batch};
  for (int i = 0; i < kNumMetrics; ++i) metrics[i * num_seeds + k] = static_cast<float>(values[i]);
}

SacUpdate::SacUpdate(const SacOptions& options)
    : options_(options), amx_(*BestAmxKernels()), train_(BestTrainKernels()) {
  policy_layers_ = MakeLayers(options.obs_size, 2 * options.action_size, options.num_seeds);
  critic_layers_ = MakeLayers(options.obs_size + options.action_size, 1, 2 * options.num_seeds);
  for (int k = 0; k < options.num_seeds; ++k) seeds_.push_back(std::make_unique<Seed>(*this, k));
  const int num_threads = std::clamp(options.num_threads, 1, options.num_seeds);
  pool_ = std::make_unique<ThreadPool>(num_threads, [this](int) { Work(); });
}

SacUpdate::~SacUpdate() = default;

SacUpdate::Layers SacUpdate::MakeLayers(int num_inputs, int num_outputs, int num_networks) const {
  std::vector<int> sizes = {num_inputs};
  sizes.insert(sizes.end(), options_.hidden_sizes.begin(), options_.hidden_sizes.end());
  sizes.push_back(num_outputs);
  Layers layers;
  const auto networks = static_cast<size_t>(num_networks);
  size_t offset = 0;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    Layer layer{};
    layer.in = sizes[i];
    layer.out = sizes[i + 1];
    layer.padded_in = Padded(i == 0 ? 2 * layer.in : layer.in, kTile);
    layer.padded_inputs = Padded(layer.in, kTile);
    layer.padded_out = Padded(layer.out, kTile);
    layer.weights = offset;
    offset += networks * static_cast<size_t>(layer.in) * static_cast<size_t>(layer.out);
    layers.push_back(layer);
  }
  for (Layer& layer : layers) {
    layer.biases = offset;
    offset += networks * static_cast<size_t>(layer.out);
  }
  return layers;
}

size_t SacUpdate::FlatSize(const Layers& layers, int num_networks) {
  const Layer& last = layers.back();
  return last.biases + static_cast<size_t>(num_networks) * static_cast<size_t>(last.out);
}

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
  finished_.store(0, std::memory_order_relaxed);
  unclaimed_.store(options_.num_seeds, std::memory_order_release);
  if (pool_->num_threads() > 1) pool_->Wake();
  Work();
  while (finished_.load(std::memory_order_acquire) < options_.num_seeds) CpuRelax();
}

void SacUpdate::Work() {
  while (true) {
    const int left = unclaimed_.fetch_sub(1, std::memory_order_acquire);
    if (left <= 0) return;
    RunSeed(options_.num_seeds - left);
    finished_.fetch_add(1, std::memory_order_release);
  }
}

void SacUpdate::RunSeed(int index) {
  Seed& seed = *seeds_[static_cast<size_t>(index)];
  const SacOptions& o = options_;
  const ptrdiff_t width = 2 * o.obs_size + o.action_size + 2;
  amx_.begin();
  seed.PackAll();
  for (int i = 0; i < count_; ++i) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(i) * o.num_seeds + index;
    seed.Step(rows_ + at * o.batch_size * width, noise_ + at * 2 * o.batch_size * o.action_size,
              step_ + i + 1, i == count_ - 1 ? metrics_ : nullptr);
  }
  amx_.end();
}

}  // namespace pyfastenv
