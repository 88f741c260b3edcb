#include "learn/ppo_update.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "learn/array_size.h"

namespace pyfastenv {

// Contiguous parameters that one thread steps: some rows of a layer's weights, biases, or log_std.
struct PpoUpdate::Piece {
  const Network* network;
  size_t begin, size;
  const PaddedLayer* layer = nullptr;  // whose rows of weights these are
  int worker = 0;
};

// One thread's memory.
struct PpoUpdate::Worker {
  explicit Worker(PolicyLoss policy_loss) : loss(std::move(policy_loss)) {}

  AlignedFloats input;                               // (block_rows_, padded obs)
  std::vector<AlignedFloats> outputs, slopes;        // of each layer
  std::vector<AlignedFloats> normals, inverse_stds;  // of each normalised one
  AlignedFloats output_gradient;                     // of the loss by the last layer's outputs
  AlignedFloats back[2];                             // of the loss by a layer's outputs
  // the same in bfloat16, and a block's share of a layer's gradient
  Bf16Matrix rounded_input, rounded_back[2];
  std::vector<Bf16Matrix> rounded_outputs, rounded_slopes;
  Bf16Matrix transposed, packed_gradient;
  AlignedFloats share;
  PolicyLoss loss;
  float lr = 0.0F;  // of the latest step
};

float AdaptedRate(const PpoHyper& hyper, float lr, double kl) {
  constexpr float kFactor = 1.5F;
  constexpr double kRounding = 1e-6;  // in float32, of policies that are the same
  if (kl > 2.0 * hyper.desired_kl) return std::max(lr / kFactor, hyper.min_lr);
  if (kl < 0.5 * hyper.desired_kl && kl > kRounding) return std::min(lr * kFactor, hyper.max_lr);
  return lr;
}

PpoUpdate::PpoUpdate(const PpoOptions& options)
    : options_(options),
      columns_{options.obs_size, options.discrete ? 1 : options.policy_sizes.back()},
      kernels_(BestTrainKernels()),
      bf16_(options.bfloat16 ? BestBf16Kernels() : nullptr),
      row_multiple_(bf16_ == nullptr ? kRowMultiple : kTile),
      block_rows_(bf16_ == nullptr ? 64 : kMaxBlockRows),
      shard_rows_(bf16_ == nullptr ? 64 : 128),
      piece_rows_(bf16_ == nullptr ? kColumnMultiple : kTile),
      layout_(piece_rows_, options.layer_norm),
      generation_(ForkGeneration()),
      parallel_(std::clamp(options.num_threads, 1, 2 * kMaxShards)) {
  networks_.reserve(2);  // pieces point to them
  networks_.push_back({layout_.AddNetwork(options.policy_sizes), true, options.policy_begin, {}});
  networks_.push_back({layout_.AddNetwork(options.value_sizes), false, options.value_begin, {}});
  if (!options.discrete) log_std_ = layout_.AddVector(options.policy_sizes.back());
  for (AlignedFloats* vector : {&parameters_, &mean_, &square_, &gradient_}) {
    *vector = AlignedFloats(layout_.padded_size());
  }
  transposed_ = AlignedFloats(layout_.transposed_size());
  const auto only_in_bf16 = [&](auto size) {
    return bf16_ == nullptr ? 0 : static_cast<int>(size);
  };
  for (Bf16Matrix* factors : {&packed_, &packed_transposed_}) {
    *factors = Bf16Matrix(1, only_in_bf16(layout_.transposed_size()));
  }
  for (Network& network : networks_) {
    for (int i = 0; i < kMaxShards; ++i) network.gradients.emplace_back(layout_.padded_size());
  }
  AddPieces();
  for (std::vector<double>& squares : squares_) squares.resize(pieces_.size());

  size_t depth = 0;
  int widest = kColumnMultiple;
  int widest_input = 0;
  for (const Network& network : networks_) {
    depth = std::max(depth, network.layers.size());
    widest_input = std::max(widest_input, network.layers.front().shape.padded_in);
    for (const PaddedLayer& layer : network.layers) {
      widest = std::max(widest, layer.shape.padded_out);
    }
  }
  const auto block = [&](int columns) { return AlignedFloats(ArraySize(block_rows_, columns)); };
  const auto rounded = [&](int columns) { return Bf16Matrix(block_rows_, only_in_bf16(columns)); };
  for (int i = 0; i < parallel_.num_threads(); ++i) {
    Worker worker(PolicyLoss(columns_, options.policy_sizes.back(),
                             networks_[0].layers.back().shape.padded_out, options.discrete,
                             block_rows_));
    worker.input = block(widest_input);
    for (size_t k = 0; k < depth; ++k) {
      worker.outputs.push_back(block(widest));
      // nothing else writes those of linear layers that are not normalised
      worker.slopes.push_back(block(widest));
      std::fill_n(worker.slopes.back().data(), ArraySize(block_rows_, widest), 1.0F);
      worker.normals.push_back(block(options.layer_norm ? widest : 0));
      worker.inverse_stds.push_back(block(1));
      worker.rounded_outputs.push_back(rounded(widest));
      worker.rounded_slopes.push_back(rounded(widest));
    }
    worker.output_gradient = block(widest);
    for (AlignedFloats& back : worker.back) back = block(widest);
    worker.rounded_input = rounded(widest_input);
    for (Bf16Matrix& back : worker.rounded_back) back = rounded(widest);
    worker.transposed = rounded(std::max(widest, widest_input));
    worker.packed_gradient = rounded(widest);
    worker.share = AlignedFloats(bf16_ == nullptr ? 0 : layout_.padded_size());
    workers_.push_back(std::move(worker));
  }
}

PpoUpdate::~PpoUpdate() = default;

// Weights in pieces of a few rows, so that any number of threads gets about as much.
void PpoUpdate::AddPieces() {
  for (const Network& network : networks_) {
    for (const PaddedLayer& layer : network.layers) {
      const size_t size = ArraySize(piece_rows_, layer.shape.padded_out);
      for (size_t begin = layer.weights; begin < layer.biases; begin += size) {
        pieces_.push_back({&network, begin, size, &layer});
      }
      const auto width = static_cast<size_t>(layer.shape.padded_out);
      pieces_.push_back({&network, layer.biases, width});
      if (layer.norm != 0) pieces_.push_back({&network, layer.norm, 2 * width});
    }
    if (network.is_policy && !options_.discrete) {
      pieces_.push_back({&network, log_std_, layout_.padded_size() - log_std_});
    }
  }
}

// The first half of the workers gets the policy's.
void PpoUpdate::AssignPieces(int num_workers) {
  for (const Network& network : networks_) {
    const int half = num_workers / 2;
    const int first = network.is_policy ? 0 : half;
    const int count = std::max(network.is_policy ? half : num_workers - half, 1);
    size_t size = 0;
    for (const Piece& piece : pieces_) size += piece.network == &network ? piece.size : 0;
    size_t before = 0;
    for (Piece& piece : pieces_) {
      if (piece.network != &network) continue;
      const size_t center = before + piece.size / 2;
      piece.worker = first + static_cast<int>(center * static_cast<size_t>(count) / size);
      before += piece.size;
    }
  }
}

void PpoUpdate::Pack(const Piece& piece) {
  if (piece.layer == nullptr) return;
  const LayerShape& shape = piece.layer->shape;
  const size_t place = piece.begin - piece.layer->weights;
  const size_t row = place / static_cast<size_t>(shape.padded_out);
  const float* weights = parameters_.data() + piece.begin;
  const size_t factor = piece.layer->transposed;
  if (bf16_ != nullptr) {
    bf16_->pack(weights, kTile, shape.padded_out, shape.padded_in,
                packed_.data() + factor + row * kTile);
  }
  if (piece.layer == &piece.network->layers.front()) return;  // passes nothing back
  if (bf16_ != nullptr) {
    bf16_->pack_transposed(weights, kTile, shape.padded_out,
                           packed_transposed_.data() + factor + place);
  } else {
    kernels_.transpose(weights, kColumnMultiple, shape.padded_out,
                       transposed_.data() + factor + row, shape.padded_in);
  }
}

std::vector<PpoMetrics> PpoUpdate::RunEpochs(const float* samples, const int64_t* orders,
                                             int num_epochs, int64_t n, PpoHyper& hyper,
                                             int64_t step, float* parameters, float* mean,
                                             float* square) {
  layout_.Scatter(mean, mean_.data());
  layout_.Scatter(square, square_.data());
  Run({samples, orders, num_epochs, n, hyper, step, /*improves=*/true}, parameters);
  layout_.Gather(parameters_.data(), parameters);
  layout_.Gather(mean_.data(), mean);
  layout_.Gather(square_.data(), square);
  hyper.lr = workers_[0].lr;
  return metrics_;
}

PpoSums PpoUpdate::Gradient(const float* samples, int64_t n, PpoHyper hyper,
                            const float* parameters, float* gradient) {
  hyper.minibatch_size = static_cast<int>(n);
  hyper.normalize_advantages = false;
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  Run({samples, order.data(), 1, n, hyper, /*step=*/0, /*improves=*/false}, parameters);
  layout_.Gather(gradient_.data(), gradient);
  return Means(/*step=*/1);
}

void PpoUpdate::Run(const Call& call, const float* parameters) {
  const int64_t size = call.hyper.minibatch_size;
  call_ = call;
  call_.num_shards = static_cast<int>(std::clamp<int64_t>(size / shard_rows_, 1, kMaxShards));
  call_.num_workers = ChooseWorkers(call_.num_shards);
  layout_.Scatter(parameters, parameters_.data());
  for (const Piece& piece : pieces_) Pack(piece);
  AssignPieces(call_.num_workers);
  for (Worker& worker : workers_) worker.lr = call.hyper.lr;
  metrics_.assign(static_cast<size_t>(call_.num_epochs), {});
  barrier_.set_num_threads(call_.num_workers);
  if (call_.num_workers == 1) return Work(0);
  const auto start = std::chrono::steady_clock::now();
  parallel_.Run(call_.num_workers, [this](int /*thread*/, int worker) { Work(worker); });
  NoteTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

PpoSums PpoUpdate::Means(int64_t step) const {
  PpoSums means;
  const double share = 1.0 / static_cast<double>(call_.hyper.num_counted());
  for (int k = 0; k < 2 * call_.num_shards; ++k) {
    means.Add(sums_[step % 2][static_cast<size_t>(k)], share);
  }
  return means;
}

int PpoUpdate::ChooseWorkers(int num_shards) {
  if (!has_threads()) return 1;
  if (calls_alone_ > 0) {
    --calls_alone_;
    return 1;
  }
  return std::min(parallel_.num_threads(), 2 * num_shards);
}

// Workers wait for each other in every minibatch, so one that must share its processor stops all.
// The longer that lasts, the longer one goes on alone until they try again.
void PpoUpdate::NoteTime(double seconds) {
  constexpr double kDisturbed = 1.7;  // two workers gain up to 1.9
  constexpr int kMostDisturbed = 5;
  const int size = call_.hyper.minibatch_size;
  const int64_t minibatches = call_.num_epochs * (call_.n / size);
  const double time = seconds / static_cast<double>(std::max<int64_t>(minibatches, 1));
  if (size != size_of_best_time_ || time < best_time_) best_time_ = time;
  size_of_best_time_ = size;
  disturbed_calls_ =
      time > kDisturbed * best_time_ ? std::min(disturbed_calls_ + 1, kMostDisturbed) : 0;
  if (disturbed_calls_ > 1) calls_alone_ = 1 << disturbed_calls_;  // one is mere bad luck
}

void PpoUpdate::Values(const float* obs, int64_t n, const float* parameters, float* values) {
  layout_.Scatter(parameters, parameters_.data());
  const Network& network = networks_[1];
  const int stride = network.layers.back().shape.padded_out;
  const int64_t num_blocks = (n + block_rows_ - 1) / block_rows_;
  const auto num_workers = static_cast<int>(
      std::clamp<int64_t>(num_blocks, 1, has_threads() ? parallel_.num_threads() : 1));
  const auto work = [&](int index) {
    Worker& worker = workers_[static_cast<size_t>(index)];
    const int64_t end = std::min(n, num_blocks * (index + 1) / num_workers * block_rows_);
    int64_t row = num_blocks * index / num_workers * block_rows_;
    while (row < end) {
      std::array<const float*, kMaxBlockRows> rows;
      const auto count = static_cast<size_t>(std::min<int64_t>(block_rows_, end - row));
      for (size_t i = 0; i < count; ++i) {
        rows[i] = obs + (row + static_cast<int64_t>(i)) * columns_.obs;
      }
      const float* outputs = Forward(worker, network, {rows.data(), count});
      for (size_t i = 0; i < count; ++i, outputs += stride) values[row++] = *outputs;
    }
  };
  if (num_workers == 1) return work(0);
  parallel_.Run(num_workers, [&](int /*thread*/, int index) { work(index); });
}

void PpoUpdate::Work(int index) {
  std::optional<Bf16Section> section;
  if (bf16_ != nullptr) section.emplace(*bf16_);
  const int64_t size = call_.hyper.minibatch_size;
  int64_t step = call_.step;
  double norm = 0.0;
  for (int epoch = 0; epoch < call_.num_epochs; ++epoch) {
    const int64_t* order = call_.orders + epoch * call_.n;
    for (const int64_t* end = order + call_.n; end - order >= size; order += size) {
      norm = RunMinibatch(index, order, ++step);
    }
    // nobody writes the step's sums again before this worker's next one
    if (index == 0 && call_.improves) metrics_[static_cast<size_t>(epoch)] = {Means(step), norm};
  }
}

double PpoUpdate::RunMinibatch(int index, const int64_t* order, int64_t step) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  const int num_shards = call_.num_shards;
  const int first = 2 * num_shards * index / call_.num_workers;
  const int end = 2 * num_shards * (index + 1) / call_.num_workers;
  if (first < num_shards) {  // some of the policy's
    AdvantageScale advantages;
    if (call_.hyper.normalize_advantages) {
      advantages = AdvantageScale::Of(call_.samples, columns_, order, call_.hyper.minibatch_size);
    }
    worker.loss.Begin(call_.hyper, advantages, parameters_.data() + log_std_);
  }
  for (int k = first; k < end; ++k) {
    sums_[step % 2][static_cast<size_t>(k)] =
        RunShard(worker, networks_[k < num_shards ? 0 : 1], k % num_shards, order);
  }
  // with two workers each has a network to itself, and only the norm is exchanged
  const bool networks_are_shared = call_.num_workers > 2;
  if (networks_are_shared) barrier_.Wait();
  Reduce(index, step);
  if (!call_.improves) return 0.0;
  barrier_.Wait();
  const double norm = GradientNorm(step);
  AdaptRate(worker, step);
  Improve(index, step, norm);
  if (networks_are_shared) barrier_.Wait();
  return norm;
}

PpoSums PpoUpdate::RunShard(Worker& worker, Network& network, int shard, const int64_t* order) {
  float* gradient = network.gradients[static_cast<size_t>(shard)].data();
  // layers' gradients are written by the first block
  if (network.is_policy) {
    std::fill(gradient + log_std_, gradient + layout_.padded_size(), 0.0F);
  }
  const int64_t size = call_.hyper.minibatch_size;
  const int64_t first = size * shard / call_.num_shards;
  const int64_t end = size * (shard + 1) / call_.num_shards;
  const int64_t num_counted = call_.hyper.num_counted();
  PpoSums sums;
  PpoSums ignored;
  for (int64_t begin = first, rows = 0; begin < end; begin += rows) {
    const bool counts = begin < num_counted;
    rows = std::min<int64_t>(block_rows_, (counts ? std::min(end, num_counted) : end) - begin);
    RunBlock(worker, network, order + begin, static_cast<int>(rows), begin == first, gradient,
             counts ? sums : ignored);
  }
  return sums;
}

void PpoUpdate::RunBlock(Worker& worker, const Network& network, const int64_t* order, int rows,
                         bool first, float* gradient, PpoSums& sums) {
  const int padded_rows = Padded(rows, row_multiple_);
  std::array<const float*, kMaxBlockRows> pointers;
  for (int i = 0; i < rows; ++i) {
    pointers[static_cast<size_t>(i)] = call_.samples + order[i] * columns_.size();
  }
  const std::span<const float* const> samples(pointers.data(), static_cast<size_t>(rows));
  const float* outputs =
      bf16_ == nullptr ? Forward(worker, network, samples) : ForwardBf16(worker, network, samples);
  const int stride = network.layers.back().shape.padded_out;
  float* by_outputs = worker.output_gradient.data();
  std::fill_n(by_outputs, padded_rows * stride, 0.0F);
  if (network.is_policy) {
    worker.loss.Rows(samples, outputs, by_outputs, gradient + log_std_, sums);
  } else {
    for (const float* sample : samples) {
      *by_outputs = ValueLoss(call_.hyper, columns_, sample, *outputs, sums);
      outputs += stride;
      by_outputs += stride;
    }
  }
  Backward(worker, network, padded_rows, first, gradient);
}

const float* PpoUpdate::Forward(Worker& worker, const Network& network,
                                std::span<const float* const> rows) {
  const int padded_rows = Padded(static_cast<int>(rows.size()), kRowMultiple);
  const LayerShape& shape = network.layers.front().shape;
  float* input = worker.input.data();
  for (const float* row : rows) {
    std::copy_n(row + network.obs_begin, shape.in, input);
    // the other network, which may be wider, was here before: its numbers would give the padding
    // of the weights a gradient
    std::fill(input + shape.in, input + shape.padded_in, 0.0F);
    input += shape.padded_in;
  }
  std::fill(input, worker.input.data() + static_cast<ptrdiff_t>(padded_rows) * shape.padded_in,
            0.0F);
  const float* x = worker.input.data();
  for (size_t k = 0; k < network.layers.size(); ++k) {
    const PaddedLayer& layer = network.layers[k];
    const bool linear = layer.norm != 0 || k + 1 == network.layers.size();
    float* outputs = worker.outputs[k].data();
    float* slopes = worker.slopes[k].data();
    float* normals = worker.normals[k].data();
    kernels_.forward(x, parameters_.data() + layer.weights, parameters_.data() + layer.biases,
                     padded_rows, layer.shape, linear ? Activation::kIdentity : options_.activation,
                     layer.norm != 0 ? normals : outputs, slopes);
    if (layer.norm != 0) {
      kernels_.normalise(parameters_.data() + layer.norm, padded_rows, layer.shape,
                         options_.activation, normals, worker.inverse_stds[k].data(), outputs,
                         slopes);
    }
    x = outputs;
  }
  return x;
}

void PpoUpdate::Backward(Worker& worker, const Network& network, int rows, bool first,
                         float* gradient) {
  if (bf16_ != nullptr) return BackwardBf16(worker, network, rows, first, gradient);
  float* dy = worker.output_gradient.data();
  for (size_t k = network.layers.size(); k-- > 0;) {
    const PaddedLayer& layer = network.layers[k];
    if (layer.norm != 0) {
      kernels_.backward_norm(parameters_.data() + layer.norm, rows, layer.shape,
                             worker.normals[k].data(), worker.inverse_stds[k].data(), nullptr,
                             first, dy, gradient + layer.norm);
    }
    const float* x = k == 0 ? worker.input.data() : worker.outputs[k - 1].data();
    kernels_.accumulate(x, dy, rows, layer.shape, first, gradient + layer.weights,
                        gradient + layer.biases);
    if (k == 0) break;
    float* dx = worker.back[k % 2].data();
    kernels_.backward(dy, transposed_.data() + layer.transposed, worker.slopes[k - 1].data(), rows,
                      layer.shape, dx);
    dy = dx;
  }
}

const float* PpoUpdate::ForwardBf16(Worker& worker, const Network& network,
                                    std::span<const float* const> rows) {
  const int padded_rows = Padded(static_cast<int>(rows.size()), kTile);
  const LayerShape& shape = network.layers.front().shape;
  uint16_t* input = worker.rounded_input.data();
  std::fill_n(input, ArraySize(padded_rows, shape.padded_in), uint16_t{0});
  for (const float* row : rows) {
    bf16_->round(row + network.obs_begin, shape.in, input);
    input += shape.padded_in;
  }
  const uint16_t* x = worker.rounded_input.data();
  for (size_t k = 0; k + 1 < network.layers.size(); ++k) {
    const PaddedLayer& layer = network.layers[k];
    const int in = layer.shape.padded_in;
    const int out = layer.shape.padded_out;
    const uint16_t* weights = packed_.data() + layer.transposed;
    const float* biases = parameters_.data() + layer.biases;
    uint16_t* y = worker.rounded_outputs[k].data();
    if (layer.norm != 0) {
      float* normals = worker.normals[k].data();
      bf16_->forward_last(x, weights, biases, padded_rows, in, out, normals);
      kernels_.normalise(parameters_.data() + layer.norm, padded_rows, layer.shape,
                         options_.activation, normals, worker.inverse_stds[k].data(),
                         worker.outputs[k].data(), worker.slopes[k].data());
      bf16_->round(worker.outputs[k].data(), padded_rows * out, y);
    } else {
      bf16_->forward_slope(options_.activation, x, weights, biases, padded_rows, in, out, y,
                           worker.rounded_slopes[k].data());
    }
    x = y;
  }
  const PaddedLayer& last = network.layers.back();
  float* outputs = worker.outputs.back().data();
  bf16_->forward_last(x, packed_.data() + last.transposed, parameters_.data() + last.biases,
                      padded_rows, last.shape.padded_in, last.shape.padded_out, outputs);
  return outputs;
}

void PpoUpdate::BackwardBf16(Worker& worker, const Network& network, int rows, bool first,
                             float* gradient) {
  uint16_t* dy = worker.rounded_back[network.layers.size() % 2].data();
  bf16_->round(worker.output_gradient.data(), rows * network.layers.back().shape.padded_out, dy);
  for (size_t k = network.layers.size(); k-- > 0;) {
    const PaddedLayer& layer = network.layers[k];
    const int in = layer.shape.padded_in;
    const int out = layer.shape.padded_out;
    const Bf16Matrix& x = k == 0 ? worker.rounded_input : worker.rounded_outputs[k - 1];
    float* total = gradient + layer.weights;  // biases follow
    float* mine = first ? total : worker.share.data();
    bf16_->transpose(x.data(), rows, in, worker.transposed.data());
    bf16_->pack_samples(dy, rows, out, worker.packed_gradient.data());
    bf16_->forward_last(worker.transposed.data(), worker.packed_gradient.data(), nullptr, in, rows,
                        out, mine);
    bf16_->column_sums(dy, rows, out, mine + ArraySize(in, out));
    if (!first) {
      const float* const parts[] = {total, mine};
      kernels_.reduce(parts, 2, ArraySize(in + 1, out), total);
    }
    if (k == 0) break;
    const PaddedLayer& before = network.layers[k - 1];
    const uint16_t* weights = packed_transposed_.data() + layer.transposed;
    uint16_t* dx = worker.rounded_back[k % 2].data();
    if (before.norm != 0) {
      float* back = worker.back[0].data();
      bf16_->forward_last(dy, weights, nullptr, rows, out, in, back);
      kernels_.backward_norm(parameters_.data() + before.norm, rows, before.shape,
                             worker.normals[k - 1].data(), worker.inverse_stds[k - 1].data(),
                             worker.slopes[k - 1].data(), first, back, gradient + before.norm);
      bf16_->round(back, rows * in, dx);
    } else {
      bf16_->backward_slope(dy, weights, worker.rounded_slopes[k - 1].data(), rows, in, out, dx);
    }
    dy = dx;
  }
}

void PpoUpdate::Reduce(int worker, int64_t step) {
  std::vector<double>& squares = squares_[step % 2];
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.worker != worker) continue;
    std::array<const float*, kMaxShards> parts{};
    for (size_t k = 0; k < static_cast<size_t>(call_.num_shards); ++k) {
      parts[k] = piece.network->gradients[k].data() + piece.begin;
    }
    squares[i] =
        kernels_.reduce(parts.data(), call_.num_shards, piece.size, gradient_.data() + piece.begin);
  }
}

double PpoUpdate::GradientNorm(int64_t step) const {
  const std::vector<double>& squares = squares_[step % 2];
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

void PpoUpdate::AdaptRate(Worker& worker, int64_t step) const {
  if (call_.hyper.desired_kl <= 0.0F) return;
  worker.lr = AdaptedRate(call_.hyper, worker.lr, Means(step).kl);
}

void PpoUpdate::Improve(int worker, int64_t step, double norm) {
  const PpoHyper& hyper = call_.hyper;
  AdamStep adam = MakeAdamStep(workers_[static_cast<size_t>(worker)].lr, hyper.beta1, hyper.beta2,
                               hyper.eps, step);
  adam.grad_scale = static_cast<float>(std::min(hyper.max_grad_norm / (norm + 1e-6), 1.0));
  for (const Piece& piece : pieces_) {
    if (piece.worker != worker) continue;
    kernels_.adam(adam, gradient_.data() + piece.begin, piece.size,
                  parameters_.data() + piece.begin, mean_.data() + piece.begin,
                  square_.data() + piece.begin);
    Pack(piece);
    if (!options_.discrete && piece.begin == log_std_) {
      float* log_std = parameters_.data() + log_std_;
      for (size_t i = 0; i < piece.size; ++i) log_std[i] = std::max(log_std[i], hyper.min_log_std);
    }
  }
}

}  // namespace pyfastenv
