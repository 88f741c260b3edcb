#include "learn/ppo_update.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace pyfastenv {

namespace {

constexpr float kHalfLogTwoPi = 0.918938533F;

}  // namespace

// One part of a minibatch: its gradients and the memory of its blocks.
struct PpoUpdate::Shard {
  AlignedFloats gradient;
  AlignedFloats input;                                       // (kBlockRows, padded obs_size)
  std::vector<AlignedFloats> policy_outputs, policy_slopes;  // of each layer
  std::vector<AlignedFloats> value_outputs, value_slopes;
  AlignedFloats policy_gradient, value_gradient;  // of a block's outputs, then of its layers
  AlignedFloats back[2];
  std::vector<float> scratch;
  double sums[5] = {};  // policy loss, value loss, entropy, kl, clipped
};

PpoUpdate::PpoUpdate(const PpoOptions& options)
    : options_(options),
      obs_size_(options.policy_sizes.front()),
      action_columns_(options.discrete ? 1 : options.policy_sizes.back()),
      kernels_(BestTrainKernels()),
      parallel_(std::clamp(options.num_threads, 1, kMaxShards)) {
  policy_ = AddNetwork(options.policy_sizes);
  value_ = AddNetwork(options.value_sizes);
  log_std_ = padded_size_;
  flat_log_std_ = num_parameters_;
  if (!options.discrete) {
    const int actions = options.policy_sizes.back();
    padded_size_ += static_cast<size_t>(Padded(actions, kColumnMultiple));
    num_parameters_ += static_cast<size_t>(actions);
    inverse_std_.resize(static_cast<size_t>(actions));
  }
  for (AlignedFloats* vector : {&parameters_, &mean_, &square_, &gradient_}) {
    *vector = AlignedFloats(padded_size_);
  }
  transposed_ = AlignedFloats(transposed_size_);
  for (int i = 0; i < kMaxShards; ++i) {
    auto shard = std::make_unique<Shard>();
    shard->gradient = AlignedFloats(padded_size_);
    const auto block = [](int columns) {
      return AlignedFloats(static_cast<size_t>(kBlockRows) * static_cast<size_t>(columns));
    };
    shard->input = block(policy_.layers[0].padded_in);
    int widest = 0;
    for (const Network* network : {&policy_, &value_}) {
      auto& outputs = network == &policy_ ? shard->policy_outputs : shard->value_outputs;
      auto& slopes = network == &policy_ ? shard->policy_slopes : shard->value_slopes;
      for (const Layer& layer : network->layers) {
        outputs.push_back(block(layer.padded_out));
        slopes.push_back(block(layer.padded_out));
        widest = std::max(widest, layer.padded_out);
      }
    }
    shard->policy_gradient = block(policy_.layers.back().padded_out);
    shard->value_gradient = block(value_.layers.back().padded_out);
    for (AlignedFloats& back : shard->back) back = block(widest);
    shard->scratch.resize(static_cast<size_t>(options.policy_sizes.back()));
    gradients_[static_cast<size_t>(i)] = shard->gradient.data();
    shards_.push_back(std::move(shard));
  }
  AddPieces(policy_);
  AddPieces(value_);
  if (!options.discrete) pieces_.push_back({log_std_, padded_size_ - log_std_, nullptr});
}

PpoUpdate::~PpoUpdate() = default;

PpoUpdate::Network PpoUpdate::AddNetwork(const std::vector<int>& sizes) {
  Network network;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    Layer layer{};
    layer.in = sizes[i];
    layer.out = sizes[i + 1];
    layer.padded_in = i == 0 ? Padded(layer.in, kColumnMultiple) : network.layers.back().padded_out;
    layer.padded_out = Padded(layer.out, kColumnMultiple);
    const size_t size =
        static_cast<size_t>(layer.padded_in) * static_cast<size_t>(layer.padded_out);
    layer.weights = padded_size_;
    layer.biases = layer.weights + size;
    padded_size_ = layer.biases + static_cast<size_t>(layer.padded_out);
    layer.transposed = transposed_size_;
    transposed_size_ += size;
    layer.flat_weights = num_parameters_;
    num_parameters_ += static_cast<size_t>(layer.in) * static_cast<size_t>(layer.out);
    network.layers.push_back(layer);
  }
  for (Layer& layer : network.layers) {
    layer.flat_biases = num_parameters_;
    num_parameters_ += static_cast<size_t>(layer.out);
  }
  return network;
}

// Calls copy(flat offset, padded offset, count) for every contiguous run of parameters.
template <class F>
void PpoUpdate::ForEachRun(F copy) const {
  for (const Network* network : {&policy_, &value_}) {
    for (const Layer& layer : network->layers) {
      for (int i = 0; i < layer.in; ++i) {
        copy(layer.flat_weights + static_cast<size_t>(i) * static_cast<size_t>(layer.out),
             layer.weights + static_cast<size_t>(i) * static_cast<size_t>(layer.padded_out),
             layer.out);
      }
      copy(layer.flat_biases, layer.biases, layer.out);
    }
  }
  if (!options_.discrete) copy(flat_log_std_, log_std_, action_columns_);
}

void PpoUpdate::Scatter(const float* flat, float* padded) const {
  ForEachRun([&](size_t from, size_t to, int n) { std::copy_n(flat + from, n, padded + to); });
}

void PpoUpdate::Gather(const float* padded, float* flat) const {
  ForEachRun([&](size_t to, size_t from, int n) { std::copy_n(padded + from, n, flat + to); });
}

void PpoUpdate::AddPieces(const Network& network) {
  for (const Layer& layer : network.layers) {
    const size_t end = layer.biases + static_cast<size_t>(layer.padded_out);
    const bool first = &layer == &network.layers.front();  // which passes no gradient on
    pieces_.push_back({layer.weights, end - layer.weights, first ? nullptr : &layer});
  }
}

void PpoUpdate::Transpose(const Layer& layer) {
  const float* from = parameters_.data() + layer.weights;
  float* to = transposed_.data() + layer.transposed;
  for (int i = 0; i < layer.padded_in; ++i) {
    for (int j = 0; j < layer.padded_out; ++j) {
      to[static_cast<ptrdiff_t>(j) * layer.padded_in + i] =
          from[static_cast<ptrdiff_t>(i) * layer.padded_out + j];
    }
  }
}

PpoMetrics PpoUpdate::RunEpoch(const float* samples, const int64_t* order, int64_t n,
                               const PpoHyper& hyper, int64_t step, float* parameters, float* mean,
                               float* square) {
  hyper_ = hyper;
  samples_ = samples;
  Scatter(parameters, parameters_.data());
  Scatter(mean, mean_.data());
  Scatter(square, square_.data());
  for (const Piece& piece : pieces_) {
    if (piece.layer != nullptr) Transpose(*piece.layer);
  }
  const int64_t size = hyper.minibatch_size;
  num_shards_ = static_cast<int>(std::clamp<int64_t>(size / kBlockRows, 1, kMaxShards));
  const ptrdiff_t columns = num_columns();
  PpoMetrics metrics;
  for (int64_t begin = 0; begin + size <= n; begin += size) {
    order_ = order + begin;
    advantage_mean_ = 0.0F;
    advantage_scale_ = 1.0F;
    if (hyper.normalize_advantages) {
      double sum = 0.0;
      double squares = 0.0;
      for (int64_t i = 0; i < size; ++i) sum += samples[order_[i] * columns + columns - 3];
      const double center = sum / static_cast<double>(size);
      for (int64_t i = 0; i < size; ++i) {
        const double d = samples[order_[i] * columns + columns - 3] - center;
        squares += d * d;
      }
      const double std = std::sqrt(squares / static_cast<double>(std::max<int64_t>(size - 1, 1)));
      advantage_mean_ = static_cast<float>(center);
      advantage_scale_ = static_cast<float>(1.0 / (std + 1e-8));
    }
    log_std_sum_ = 0.0F;
    for (size_t i = 0; i < inverse_std_.size(); ++i) {
      log_std_sum_ += parameters_.data()[log_std_ + i];
      inverse_std_[i] = std::exp(-parameters_.data()[log_std_ + i]);
    }
    parallel_.Run(num_shards_, [this](int /*worker*/, int shard) { RunShard(shard); });
    metrics.grad_norm = Learn(++step);
  }
  double sums[5] = {};
  for (int k = 0; k < num_shards_; ++k) {
    const Shard& shard = *shards_[static_cast<size_t>(k)];
    for (int i = 0; i < 5; ++i) sums[i] += shard.sums[i] / static_cast<double>(size);
  }
  metrics.policy_loss = sums[0];
  metrics.value_loss = sums[1];
  metrics.entropy = sums[2];
  metrics.kl = sums[3];
  metrics.clip_fraction = sums[4];
  Gather(parameters_.data(), parameters);
  Gather(mean_.data(), mean);
  Gather(square_.data(), square);
  return metrics;
}

// ---- one minibatch ----

void PpoUpdate::RunShard(int index) {
  Shard& shard = *shards_[static_cast<size_t>(index)];
  // layers' gradients are written by the first block
  std::fill_n(shard.gradient.data() + log_std_, padded_size_ - log_std_, 0.0F);
  std::fill_n(shard.sums, 5, 0.0);
  const int64_t size = hyper_.minibatch_size;
  const int64_t first = size * index / num_shards_;
  const int64_t end = size * (index + 1) / num_shards_;
  for (int64_t begin = first; begin < end; begin += kBlockRows) {
    const auto rows = static_cast<int>(std::min<int64_t>(kBlockRows, end - begin));
    RunBlock(shard, begin, rows, begin == first);
  }
}

void PpoUpdate::RunBlock(Shard& shard, int64_t begin, int rows, bool first) {
  const int padded_rows = Padded(rows, kRowMultiple);
  const ptrdiff_t columns = num_columns();
  const int width = policy_.layers[0].padded_in;
  for (int i = 0; i < padded_rows; ++i) {
    float* input = shard.input.data() + static_cast<ptrdiff_t>(i) * width;
    if (i < rows) {
      std::copy_n(samples_ + order_[begin + i] * columns, obs_size_, input);
    } else {
      std::fill_n(input, obs_size_, 0.0F);
    }
  }
  const float* outputs =
      Forward(policy_, shard, shard.policy_outputs, shard.policy_slopes, padded_rows);
  const float* values =
      Forward(value_, shard, shard.value_outputs, shard.value_slopes, padded_rows);

  const int output_width = policy_.layers.back().padded_out;
  const int value_width = value_.layers.back().padded_out;
  std::fill_n(shard.policy_gradient.data(), padded_rows * output_width, 0.0F);
  std::fill_n(shard.value_gradient.data(), padded_rows * value_width, 0.0F);
  for (int i = 0; i < rows; ++i) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(i) * output_width;
    const ptrdiff_t value_at = static_cast<ptrdiff_t>(i) * value_width;
    LossOfRow(shard, samples_ + order_[begin + i] * columns, outputs + at, values[value_at],
              shard.policy_gradient.data() + at, shard.value_gradient.data() + value_at);
  }
  Backward(policy_, shard, shard.policy_outputs, shard.policy_slopes, shard.policy_gradient,
           padded_rows, first);
  Backward(value_, shard, shard.value_outputs, shard.value_slopes, shard.value_gradient,
           padded_rows, first);
}

const float* PpoUpdate::Forward(const Network& network, Shard& shard,
                                std::vector<AlignedFloats>& outputs,
                                std::vector<AlignedFloats>& slopes, int rows) {
  const float* x = shard.input.data();
  for (size_t k = 0; k < network.layers.size(); ++k) {
    const Layer& layer = network.layers[k];
    const bool last = k + 1 == network.layers.size();
    kernels_.forward(x, parameters_.data() + layer.weights, parameters_.data() + layer.biases, rows,
                     layer.padded_in, layer.padded_out,
                     last ? Activation::kIdentity : options_.activation, outputs[k].data(),
                     slopes[k].data());
    x = outputs[k].data();
  }
  return x;
}

void PpoUpdate::Backward(const Network& network, Shard& shard,
                         const std::vector<AlignedFloats>& outputs,
                         const std::vector<AlignedFloats>& slopes, AlignedFloats& gradient,
                         int rows, bool first) {
  const float* dy = gradient.data();
  for (size_t k = network.layers.size(); k-- > 0;) {
    const Layer& layer = network.layers[k];
    const float* x = k == 0 ? shard.input.data() : outputs[k - 1].data();
    kernels_.accumulate(x, dy, rows, layer.padded_in, layer.padded_out, first,
                        shard.gradient.data() + layer.weights,
                        shard.gradient.data() + layer.biases);
    if (k == 0) break;
    float* dx = shard.back[k % 2].data();
    kernels_.backward(dy, transposed_.data() + layer.transposed, slopes[k - 1].data(), rows,
                      layer.padded_in, layer.padded_out, dx);
    dy = dx;
  }
}

// functional.ppo_gradients, one row: losses, and gradients by the outputs.
void PpoUpdate::LossOfRow(Shard& shard, const float* sample, const float* outputs, float value,
                          float* output_gradient, float* value_gradient) {
  const float* action = sample + obs_size_;
  const float* rest = action + action_columns_;
  const float old_log_prob = rest[0];
  const float advantage = (rest[1] - advantage_mean_) * advantage_scale_;
  const float target = rest[2];
  const float old_value = rest[3];
  const int size = options_.policy_sizes.back();
  const float share = 1.0F / static_cast<float>(hyper_.minibatch_size);
  float* scratch = shard.scratch.data();

  float log_prob = 0.0F;
  float entropy = 0.0F;
  if (options_.discrete) {
    const float best = *std::max_element(outputs, outputs + size);
    float sum = 0.0F;
    for (int i = 0; i < size; ++i) sum += std::exp(outputs[i] - best);
    const float log_sum = best + std::log(sum);
    for (int i = 0; i < size; ++i) {
      scratch[i] = std::exp(outputs[i] - log_sum);
      entropy -= scratch[i] * (outputs[i] - log_sum);
    }
    log_prob = outputs[static_cast<int>(action[0])] - log_sum;
  } else {
    float squares = 0.0F;
    for (int i = 0; i < size; ++i) {
      scratch[i] = (action[i] - outputs[i]) * inverse_std_[static_cast<size_t>(i)];
      squares += scratch[i] * scratch[i];
    }
    const float constant = kHalfLogTwoPi * static_cast<float>(size);
    log_prob = -0.5F * squares - log_std_sum_ - constant;
    entropy = log_std_sum_ + constant + 0.5F * static_cast<float>(size);
  }

  const float log_ratio = log_prob - old_log_prob;
  const float ratio = std::exp(log_ratio);
  const float surrogate = advantage * ratio;
  const float clipped = advantage * std::clamp(ratio, 1.0F - hyper_.clip, 1.0F + hyper_.clip);
  // where the clipped term is the smaller, it is constant in the parameters
  const float weight = surrogate <= clipped ? -surrogate * share : 0.0F;

  if (options_.discrete) {
    for (int i = 0; i < size; ++i) {
      output_gradient[i] = -weight * scratch[i];
      if (hyper_.entropy_coef != 0.0F && scratch[i] > 0.0F) {
        output_gradient[i] +=
            hyper_.entropy_coef * share * scratch[i] * (std::log(scratch[i]) + entropy);
      }
    }
    output_gradient[static_cast<int>(action[0])] += weight;
  } else {
    float* log_std_gradient = shard.gradient.data() + log_std_;
    for (int i = 0; i < size; ++i) {
      const float z = scratch[i];
      output_gradient[i] = weight * z * inverse_std_[static_cast<size_t>(i)];
      log_std_gradient[i] += weight * (z * z - 1.0F) - hyper_.entropy_coef * share;
    }
  }

  const float error = value - target;
  float value_slope = error;
  float squared = error * error;
  if (hyper_.value_clip > 0.0F) {
    const float change = value - old_value;
    const float clipped_error =
        old_value + std::clamp(change, -hyper_.value_clip, hyper_.value_clip) - target;
    if (squared < clipped_error * clipped_error) {
      squared = clipped_error * clipped_error;
      value_slope = std::fabs(change) <= hyper_.value_clip ? clipped_error : 0.0F;
    }
  }
  value_gradient[0] = hyper_.value_coef * share * value_slope;

  shard.sums[0] -= std::min(surrogate, clipped);
  shard.sums[1] += 0.5 * squared;
  shard.sums[2] += entropy;
  shard.sums[3] += ratio - 1.0F - log_ratio;
  shard.sums[4] += std::fabs(ratio - 1.0F) > hyper_.clip ? 1.0 : 0.0;
}

double PpoUpdate::Learn(int64_t step) {
  const auto num_pieces = static_cast<int>(pieces_.size());
  parallel_.Run(num_pieces, [this](int /*worker*/, int index) {
    Piece& piece = pieces_[static_cast<size_t>(index)];
    std::array<const float*, kMaxShards> parts = gradients_;
    for (const float*& part : parts) part += piece.begin;
    piece.squares =
        kernels_.reduce(parts.data(), num_shards_, piece.size, gradient_.data() + piece.begin);
  });
  double squares = 0.0;
  for (const Piece& piece : pieces_) squares += piece.squares;
  const double norm = std::sqrt(squares);

  const auto t = static_cast<double>(step);
  AdamStep adam{};
  adam.lr = static_cast<float>(hyper_.lr / (1.0 - std::pow(hyper_.beta1, t)));
  adam.beta1 = hyper_.beta1;
  adam.beta2 = hyper_.beta2;
  adam.root_correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(hyper_.beta2, t)));
  adam.eps = hyper_.eps;
  adam.grad_scale = static_cast<float>(std::min(hyper_.max_grad_norm / (norm + 1e-6), 1.0));
  parallel_.Run(num_pieces, [this, &adam](int /*worker*/, int index) {
    const Piece& piece = pieces_[static_cast<size_t>(index)];
    kernels_.adam(adam, gradient_.data() + piece.begin, piece.size,
                  parameters_.data() + piece.begin, mean_.data() + piece.begin,
                  square_.data() + piece.begin);
    if (piece.layer != nullptr) Transpose(*piece.layer);
  });
  return norm;
}

}  // namespace pyfastenv
