#include "learn/unit_networks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "learn/bf16_network.h"

namespace pyfastenv {

namespace {

constexpr int kExpansion = 4;
constexpr float kNormEps = 1e-5F;  // PyTorch's BatchNorm1d
constexpr float kRmsEps = 1e-6F;
constexpr float kMomentum = 0.01F;
constexpr double kProjectEps = 1e-8;

size_t Size(int rows, int columns) {
  return static_cast<size_t>(rows) * static_cast<size_t>(columns);
}

int Wide(int size) { return Padded(size, kTile); }

}  // namespace

UnitLayout::UnitLayout(const UnitOptions& options) {
  const auto norm = [this](int size) {
    const UnitNorm result{size, num_parameters, num_moments};
    num_parameters += Size(2, size);
    num_moments += Size(2, size);
    return result;
  };
  const auto layer = [this](int in, int out) {
    const UnitLayer result{in, out, num_parameters};
    num_parameters += Size(out, in);
    return result;
  };
  const int width = options.width;
  input = norm(options.num_inputs);
  first = layer(options.num_inputs, width);
  for (int i = 0; i < options.num_blocks; ++i) {
    Block block;
    block.expand = layer(width, kExpansion * width);
    block.inner = norm(kExpansion * width);
    block.contract = layer(kExpansion * width, width);
    block.outer = norm(width);
    blocks.push_back(block);
  }
  rms_weights = num_parameters;
  num_parameters += static_cast<size_t>(width);
  last = layer(width, options.num_outputs);
  last_bias = num_parameters;
  num_parameters += static_cast<size_t>(options.num_outputs);
}

namespace {

// What one normalisation did, as norm(y) = y * scale + shift, and how it goes back
class NormState {
 public:
  explicit NormState(const UnitNorm& place)
      : place_(place),
        padded_(Wide(place.size)),
        plain_(static_cast<size_t>(padded_)),
        weighted_(plain_),
        mean_(plain_.size()),
        inverse_(plain_.size()),
        vectors_{Zeros(), Zeros(), Zeros(), Zeros(), Zeros()} {}

  const float* scale() const { return vectors_[0].data(); }
  const float* shift() const { return vectors_[1].data(); }
  /// Through the normalisation: dx = a * dy + b * y + c.
  const float* a() const { return vectors_[2].data(); }
  const float* b() const { return vectors_[3].data(); }
  const float* c() const { return vectors_[4].data(); }

  /// Empty sums, to be added to.
  ColumnSums Sums() {
    std::fill(plain_.begin(), plain_.end(), 0.0);
    std::fill(weighted_.begin(), weighted_.end(), 0.0);
    return {plain_.data(), weighted_.data()};
  }

  /// By the sums of the columns and of their squares, which the running moments follow.
  void SetByBatch(const float* parameters, float* moments, int rows) {
    float* means = moments + place_.moments;
    float* variances = means + place_.size;
    for (size_t i = 0; i < size(); ++i) {
      const double mean = plain_[i] / rows;
      const double variance = std::max(weighted_[i] / rows - mean * mean, 0.0);
      const double unbiased = variance * rows / std::max(rows - 1, 1);
      means[i] += kMomentum * (static_cast<float>(mean) - means[i]);
      variances[i] += kMomentum * (static_cast<float>(unbiased) - variances[i]);
      Set(parameters, i, mean, variance);
    }
  }

  /// By the running moments.
  void SetByMoments(const float* parameters, const float* moments) {
    const float* means = moments + place_.moments;
    for (size_t i = 0; i < size(); ++i) Set(parameters, i, means[i], means[i + size()]);
  }

  /// By the sums of the gradient behind it and of that times y: the way back, and the gradients of
  /// its parameters (null: not wanted).
  void SetBack(bool by_batch, int rows, float* gradients) {
    for (size_t i = 0; i < size(); ++i) {
      const double by_scale = inverse_[i] * (weighted_[i] - mean_[i] * plain_[i]);
      if (gradients != nullptr) {
        gradients[place_.parameters + i] = static_cast<float>(by_scale);
        gradients[place_.parameters + size() + i] = static_cast<float>(plain_[i]);
      }
      const double times = scale()[i];
      const double slope = by_batch ? times * inverse_[i] * by_scale / rows : 0.0;
      vectors_[2].data()[i] = static_cast<float>(times);
      vectors_[3].data()[i] = static_cast<float>(-slope);
      vectors_[4].data()[i] =
          by_batch ? static_cast<float>(slope * mean_[i] - times * plain_[i] / rows) : 0.0F;
    }
  }

 private:
  size_t size() const { return static_cast<size_t>(place_.size); }
  AlignedFloats Zeros() const { return AlignedFloats(static_cast<size_t>(padded_)); }

  void Set(const float* parameters, size_t i, double mean, double variance) {
    mean_[i] = mean;
    inverse_[i] = 1.0 / std::sqrt(variance + kNormEps);
    const double times = parameters[place_.parameters + i] * inverse_[i];
    vectors_[0].data()[i] = static_cast<float>(times);
    vectors_[1].data()[i] =
        static_cast<float>(parameters[place_.parameters + size() + i] - mean * times);
  }

  UnitNorm place_;
  int padded_;
  std::vector<double> plain_, weighted_, mean_, inverse_;
  AlignedFloats vectors_[5];
};

// A layer's weights as right-hand factors, padded
class LayerFactors {
 public:
  explicit LayerFactors(const UnitLayer& layer)
      : layer(layer),
        in(Wide(layer.in)),
        out(Wide(layer.out)),
        forward_(in, out),
        backward_(out, in) {}

  const UnitLayer layer;
  const int in, out;

  const uint16_t* Forward(const Bf16Kernels& kernels, const float* parameters) {
    kernels.pack_transposed(parameters + layer.weights, layer.out, layer.in, forward_.data());
    return forward_.data();
  }
  const uint16_t* Backward(const Bf16Kernels& kernels, const float* parameters) {
    kernels.pack(parameters + layer.weights, layer.out, layer.in, backward_.data());
    return backward_.data();
  }

 private:
  Bf16Matrix forward_, backward_;
};

}  // namespace

// A network's latest pass.
class UnitNetworks::Network {
 public:
  Network(const UnitLayout& layout, const UnitOptions& options)
      : layout_(layout),
        width_(Wide(options.width)),
        input_norm_(layout.input),
        first_(layout.first),
        last_(layout.last),
        inputs_(AlignedFloats(Size(options.max_rows, options.num_inputs))),
        inverse_(static_cast<size_t>(options.max_rows)) {
    const int rows = Wide(options.max_rows);
    widest_ =
        std::max({kExpansion * width_, Wide(kExpansion * options.width), first_.in, last_.out});
    normed_ = Bf16Matrix(rows, first_.in);
    features_.emplace_back(rows, width_);
    for (const UnitLayout::Block& block : layout.blocks) {
      blocks_.emplace_back(block, rows);
      features_.emplace_back(rows, width_);
    }
    final_ = Bf16Matrix(rows, width_);
    outputs_ = AlignedFloats(Size(rows, std::max({last_.out, first_.in, width_})));
    for (Bf16Matrix& matrix : gradients_) matrix = Bf16Matrix(rows, widest_);
    transposed_ = Bf16Matrix(widest_, rows);
    packed_ = Bf16Matrix(rows, widest_);
    by_weights_ = AlignedFloats(Size(widest_, widest_));
    by_columns_ = AlignedFloats(static_cast<size_t>(widest_));
  }

  void Forward(const float* inputs, int rows, const float* parameters, float* moments,
               bool by_batch, float* outputs) {
    rows_ = rows;
    padded_rows_ = Wide(rows);
    by_batch_ = by_batch;
    const int num_inputs = layout_.first.in;
    std::copy_n(inputs, Size(rows, num_inputs), inputs_.data());
    const auto set = [&](NormState& norm) {
      if (by_batch) {
        norm.SetByBatch(parameters, moments, rows);
      } else {
        norm.SetByMoments(parameters, moments);
      }
    };
    if (by_batch) {
      unit_.sum(inputs, num_inputs, inputs, num_inputs, rows, num_inputs, input_norm_.Sums());
    }
    set(input_norm_);
    unit_.round(inputs, input_norm_.scale(), input_norm_.shift(), rows, num_inputs, first_.in,
                normed_.data());
    ClearPadding(normed_, first_.in);
    unit_.forward(normed_.data(), first_.Forward(kernels_, parameters), padded_rows_, first_.in,
                  width_, features_[0].data(), Unused());
    for (size_t i = 0; i < blocks_.size(); ++i) {
      Block& block = blocks_[i];
      const int inside = block.expand.out;
      unit_.forward(features_[i].data(), block.expand.Forward(kernels_, parameters), padded_rows_,
                    width_, inside, block.expanded.data(), block.inner.Sums());
      set(block.inner);
      unit_.activate(block.expanded.data(), block.inner.scale(), block.inner.shift(), nullptr, rows,
                     inside, block.active.data());
      ClearPadding(block.active, inside);
      unit_.forward(block.active.data(), block.contract.Forward(kernels_, parameters), padded_rows_,
                    inside, width_, block.contracted.data(), block.outer.Sums());
      set(block.outer);
      unit_.activate(block.contracted.data(), block.outer.scale(), block.outer.shift(),
                     features_[i].data(), rows, width_, features_[i + 1].data());
      ClearPadding(features_[i + 1], width_);
    }
    std::copy_n(parameters + layout_.rms_weights, layout_.last.in, by_columns_.data());
    std::fill(by_columns_.data() + layout_.last.in, by_columns_.data() + width_, 0.0F);
    unit_.rms_norm(features_.back().data(), by_columns_.data(), rows, width_, layout_.last.in,
                   kRmsEps, final_.data(), inverse_.data());
    ClearPadding(final_, width_);
    kernels_.forward_last(final_.data(), last_.Forward(kernels_, parameters), nullptr, padded_rows_,
                          width_, last_.out, outputs_.data());
    const float* bias = parameters + layout_.last_bias;
    const int num_outputs = layout_.last.out;
    for (int row = 0; row < rows; ++row) {
      const float* from = outputs_.data() + Size(row, last_.out);
      float* to = outputs + Size(row, num_outputs);
      for (int i = 0; i < num_outputs; ++i) to[i] = from[i] + bias[i];
    }
  }

  void Backward(const float* by_outputs, const float* parameters, float* gradients,
                float* by_inputs) {
    uint16_t* by_last = gradients_[0].data();
    unit_.round(by_outputs, nullptr, nullptr, rows_, layout_.last.out, last_.out, by_last);
    ClearPadding(gradients_[0], last_.out);
    if (gradients != nullptr) {
      kernels_.column_sums(by_last, padded_rows_, last_.out, by_columns_.data());
      std::copy_n(by_columns_.data(), layout_.last.out, gradients + layout_.last_bias);
      WriteWeights(last_, by_last, final_.data(), gradients);
    }
    kernels_.forward_last(by_last, last_.Backward(kernels_, parameters), nullptr, padded_rows_,
                          last_.out, width_, outputs_.data());
    AlignedFloats& weights = by_weights_;  // free for now: the norm's weights, and their gradient
    std::copy_n(parameters + layout_.rms_weights, layout_.last.in, weights.data());
    std::fill(weights.data() + layout_.last.in, weights.data() + width_, 0.0F);
    size_t at = 1;
    unit_.rms_backward(outputs_.data(), features_.back().data(), weights.data(), inverse_.data(),
                       rows_, width_, layout_.last.in, gradients_[at].data(), by_columns_.data());
    ClearPadding(gradients_[at], width_);
    if (gradients != nullptr) {
      std::copy_n(by_columns_.data(), layout_.last.in, gradients + layout_.rms_weights);
    }
    for (size_t i = blocks_.size(); i-- > 0;) {
      BackThrough(blocks_[i], features_[i], gradients_[at].data(), parameters, gradients,
                  gradients_[1 - at].data());
      at = 1 - at;
    }
    const uint16_t* by_features = gradients_[at].data();
    if (gradients != nullptr) WriteWeights(first_, by_features, normed_.data(), gradients);
    if (gradients == nullptr && by_inputs == nullptr) return;
    kernels_.forward_last(by_features, first_.Backward(kernels_, parameters), nullptr, padded_rows_,
                          width_, first_.in, outputs_.data());
    const int num_inputs = layout_.first.in;
    unit_.sum(outputs_.data(), first_.in, inputs_.data(), num_inputs, rows_, num_inputs,
              input_norm_.Sums());
    input_norm_.SetBack(by_batch_, rows_, gradients);
    if (by_inputs == nullptr) return;
    const NormState& norm = input_norm_;
    for (int row = 0; row < rows_; ++row) {
      const float* from = outputs_.data() + Size(row, first_.in);
      const float* x = inputs_.data() + Size(row, num_inputs);
      float* to = by_inputs + Size(row, num_inputs);
      for (int i = 0; i < num_inputs; ++i) {
        to[i] = norm.a()[i] * from[i] + norm.b()[i] * x[i] + norm.c()[i];
      }
    }
  }

 private:
  struct Block {
    Block(const UnitLayout::Block& layout, int rows)
        : expand(layout.expand),
          contract(layout.contract),
          inner(layout.inner),
          outer(layout.outer),
          expanded(rows, expand.out),
          active(rows, expand.out),
          contracted(rows, contract.out) {}

    LayerFactors expand, contract;
    NormState inner, outer;
    Bf16Matrix expanded, active, contracted;  // before and after the inner norm, before the outer
  };

  // by_result (rows, width) is the gradient by the block's result; by_features by its argument
  void BackThrough(Block& block, const Bf16Matrix& features, const uint16_t* by_result,
                   const float* parameters, float* gradients, uint16_t* by_features) {
    uint16_t* by_contracted = gradients_[2].data();
    unit_.mask(by_result, block.contracted.data(), block.outer.scale(), block.outer.shift(), rows_,
               width_, by_contracted, block.outer.Sums());
    block.outer.SetBack(by_batch_, rows_, gradients);
    unit_.through_norm(block.contracted.data(), block.outer.a(), block.outer.b(), block.outer.c(),
                       rows_, width_, by_contracted);
    ClearPadding(gradients_[2], width_);
    if (gradients != nullptr) {
      WriteWeights(block.contract, by_contracted, block.active.data(), gradients);
    }
    const int inside = block.expand.out;
    uint16_t* by_expanded = gradients_[3].data();
    unit_.backward(by_contracted, block.contract.Backward(kernels_, parameters),
                   block.expanded.data(), block.inner.scale(), block.inner.shift(), padded_rows_,
                   inside, width_, by_expanded, block.inner.Sums());
    block.inner.SetBack(by_batch_, rows_, gradients);
    unit_.through_norm(block.expanded.data(), block.inner.a(), block.inner.b(), block.inner.c(),
                       rows_, inside, by_expanded);
    if (gradients != nullptr) WriteWeights(block.expand, by_expanded, features.data(), gradients);
    unit_.backward_add(by_expanded, block.expand.Backward(kernels_, parameters), by_result,
                       padded_rows_, width_, inside, by_features);
  }

  // (out, in) = dy (rows, out)^T @ x (rows, in)
  void WriteWeights(const LayerFactors& factors, const uint16_t* dy, const uint16_t* x,
                    float* gradients) {
    const UnitLayer& layer = factors.layer;
    float* to = gradients + layer.weights;
    kernels_.transpose(dy, padded_rows_, factors.out, transposed_.data());
    kernels_.pack_samples(x, padded_rows_, factors.in, packed_.data());
    const bool whole = layer.in == factors.in && layer.out == factors.out;
    float* result = whole ? to : by_weights_.data();
    kernels_.forward_last(transposed_.data(), packed_.data(), nullptr, factors.out, padded_rows_,
                          factors.in, result);
    if (whole) return;
    for (int row = 0; row < layer.out; ++row) {
      std::copy_n(result + Size(row, factors.in), layer.in, to + Size(row, layer.in));
    }
  }

  // products read whole tiles: rows after the last are to be zero
  void ClearPadding(Bf16Matrix& matrix, int columns) const {
    std::memset(matrix.data() + Size(rows_, columns), 0,
                Size(padded_rows_ - rows_, columns) * sizeof(uint16_t));
  }

  ColumnSums Unused() {
    unused_.assign(2 * static_cast<size_t>(width_), 0.0);
    return {unused_.data(), unused_.data() + width_};
  }

  const Bf16Kernels& kernels_ = *BestBf16Kernels();
  const UnitKernels& unit_ = *BestUnitKernels();
  const UnitLayout& layout_;
  const int width_;
  int widest_ = 0;
  int rows_ = 0;
  int padded_rows_ = 0;
  bool by_batch_ = false;
  NormState input_norm_;
  LayerFactors first_, last_;
  AlignedFloats inputs_;
  Bf16Matrix normed_;
  std::vector<Bf16Matrix> features_;  // before, between and after the blocks
  std::vector<Block> blocks_;
  Bf16Matrix final_;            // normed features
  std::vector<float> inverse_;  // of their root mean squares before
  AlignedFloats outputs_;       // of float32 products
  // by the last layer's outputs and, in turn, by features; within a block
  Bf16Matrix gradients_[4];
  Bf16Matrix transposed_, packed_;
  AlignedFloats by_weights_, by_columns_;
  std::vector<double> unused_;
};

namespace {

void ScaleTo(double length, float* values, size_t size, double eps) {
  double squares = 0.0;
  for (size_t i = 0; i < size; ++i) squares += static_cast<double>(values[i]) * values[i];
  const auto factor = static_cast<float>(length / std::sqrt(squares + eps));
  for (size_t i = 0; i < size; ++i) values[i] *= factor;
}

}  // namespace

void UnitNetworks::Project(float* parameters) {
  const auto layer = [](const UnitLayer& place, float* of) {
    const auto in = static_cast<size_t>(place.in);
    for (size_t i = 0; i < static_cast<size_t>(place.out); ++i) {
      ScaleTo(1.0, of + place.weights + i * in, in, 1e-16);  // PyTorch's normalize with 1e-8
    }
  };
  const auto norm = [](const UnitNorm& place, float* of) {
    ScaleTo(std::sqrt(place.size), of + place.parameters, Size(2, place.size), kProjectEps);
  };
  parallel_.Run(options_.num_networks, [&](int /*worker*/, int index) {
    float* mine = parameters + static_cast<size_t>(index) * num_parameters();
    norm(layout_.input, mine);
    layer(layout_.first, mine);
    for (const UnitLayout::Block& block : layout_.blocks) {
      layer(block.expand, mine);
      norm(block.inner, mine);
      layer(block.contract, mine);
      norm(block.outer, mine);
    }
    ScaleTo(std::sqrt(options_.width), mine + layout_.rms_weights,
            static_cast<size_t>(options_.width), kProjectEps);
    layer(layout_.last, mine);
  });
}

UnitNetworks::UnitNetworks(const UnitOptions& options)
    : options_(options),
      layout_(options),
      parallel_(std::clamp(options.num_threads, 1, options.num_networks)) {
  for (int i = 0; i < options.num_networks; ++i) {
    networks_.push_back(std::make_unique<Network>(layout_, options));
  }
}

UnitNetworks::~UnitNetworks() = default;

void UnitNetworks::Forward(const float* inputs, int rows, const float* parameters, float* moments,
                           bool by_batch, float* outputs) {
  rows_ = rows;
  parallel_.Run(options_.num_networks, [&](int /*worker*/, int index) {
    const auto i = static_cast<size_t>(index);
    BestBf16Kernels()->begin();
    networks_[i]->Forward(inputs + i * Size(rows, options_.num_inputs), rows,
                          parameters + i * num_parameters(), moments + i * num_moments(), by_batch,
                          outputs + i * Size(rows, options_.num_outputs));
    BestBf16Kernels()->end();
  });
}

void UnitNetworks::Backward(const float* by_outputs, const float* parameters, float* gradients,
                            float* by_inputs) {
  parallel_.Run(options_.num_networks, [&](int /*worker*/, int index) {
    const auto i = static_cast<size_t>(index);
    BestBf16Kernels()->begin();
    networks_[i]->Backward(
        by_outputs + i * Size(rows_, options_.num_outputs), parameters + i * num_parameters(),
        gradients == nullptr ? nullptr : gradients + i * num_parameters(),
        by_inputs == nullptr ? nullptr : by_inputs + i * Size(rows_, options_.num_inputs));
    BestBf16Kernels()->end();
  });
}

}  // namespace pyfastenv
