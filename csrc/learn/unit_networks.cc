#include "learn/unit_networks.h"

#include <algorithm>
#include <cstring>

#include "learn/array_size.h"
#include "learn/bf16_network.h"
#include "learn/unit_norm.h"

namespace pyfastenv {

namespace {

constexpr float kRmsEps = 1e-6F;

int Wide(int size) { return Padded(size, kTile); }

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
    kernels.pack(parameters + layer.weights, layer.out, layer.in, out, backward_.data());
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
        inputs_(AlignedFloats(ArraySize(options.max_rows, options.num_inputs))),
        inverse_(static_cast<size_t>(options.max_rows)) {
    const int rows = Wide(options.max_rows);
    normed_ = Bf16Matrix(rows, first_.in);
    features_.emplace_back(rows, width_);
    for (const UnitLayout::Block& block : layout.blocks) {
      blocks_.emplace_back(block, rows);
      features_.emplace_back(rows, width_);
    }
    final_ = Bf16Matrix(rows, width_);
    outputs_ = AlignedFloats(ArraySize(rows, std::max({last_.out, first_.in, width_})));
    int widest = std::max({width_, first_.in, last_.out});
    for (const Block& block : blocks_) widest = std::max(widest, block.expand.out);
    for (Bf16Matrix& matrix : gradients_) matrix = Bf16Matrix(rows, widest);
    transposed_ = Bf16Matrix(widest, rows);
    packed_ = Bf16Matrix(rows, widest);
    by_weights_ = AlignedFloats(ArraySize(widest, width_));  // a layer is as wide on one side
    by_columns_ = AlignedFloats(static_cast<size_t>(widest));
    rms_weights_ = AlignedFloats(static_cast<size_t>(width_));
  }

  void Forward(const float* inputs, int rows, const float* parameters, float* moments,
               bool by_batch, float* outputs) {
    rows_ = rows;
    padded_rows_ = Wide(rows);
    by_batch_ = by_batch;
    const int num_inputs = layout_.first.in;
    std::copy_n(inputs, ArraySize(rows, num_inputs), inputs_.data());
    const auto set = [&](UnitNormState& norm) {
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
                  width_, features_[0].data(), ColumnSums());
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
    std::copy_n(parameters + layout_.rms_weights, layout_.last.in, rms_weights_.data());
    unit_.rms_norm(features_.back().data(), rms_weights_.data(), rows, width_, layout_.last.in,
                   kRmsEps, final_.data(), inverse_.data());
    ClearPadding(final_, width_);
    kernels_.forward_last(final_.data(), last_.Forward(kernels_, parameters), nullptr, padded_rows_,
                          width_, last_.out, outputs_.data());
    const float* bias = parameters + layout_.last_bias;
    const int num_outputs = layout_.last.out;
    for (int row = 0; row < rows; ++row) {
      const float* from = outputs_.data() + ArraySize(row, last_.out);
      float* to = outputs + ArraySize(row, num_outputs);
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
    size_t at = 1;
    unit_.rms_backward(outputs_.data(), features_.back().data(), rms_weights_.data(),
                       inverse_.data(), rows_, width_, layout_.last.in, gradients_[at].data(),
                       by_columns_.data());
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
    const UnitNormState& norm = input_norm_;
    for (int row = 0; row < rows_; ++row) {
      const float* from = outputs_.data() + ArraySize(row, first_.in);
      const float* x = inputs_.data() + ArraySize(row, num_inputs);
      float* to = by_inputs + ArraySize(row, num_inputs);
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
    UnitNormState inner, outer;
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
      std::copy_n(result + ArraySize(row, factors.in), layer.in, to + ArraySize(row, layer.in));
    }
  }

  // products read whole tiles: rows after the last are to be zero
  void ClearPadding(Bf16Matrix& matrix, int columns) const {
    std::memset(matrix.data() + ArraySize(rows_, columns), 0,
                ArraySize(padded_rows_ - rows_, columns) * sizeof(uint16_t));
  }

  const Bf16Kernels& kernels_ = *BestBf16Kernels();
  const UnitKernels& unit_ = *BestUnitKernels();
  const UnitLayout& layout_;
  const int width_;
  int rows_ = 0;
  int padded_rows_ = 0;
  bool by_batch_ = false;
  UnitNormState input_norm_;
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
  AlignedFloats rms_weights_;  // of the latest pass, zero in the padding
};

void UnitNetworks::Project(float* parameters) {
  parallel_.Run(options_.num_networks, [&](int /*worker*/, int index) {
    layout_.Project(parameters + static_cast<size_t>(index) * num_parameters());
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
    const Bf16Section section(*BestBf16Kernels());
    networks_[i]->Forward(inputs + i * ArraySize(rows, options_.num_inputs), rows,
                          parameters + i * num_parameters(), moments + i * num_moments(), by_batch,
                          outputs + i * ArraySize(rows, options_.num_outputs));
  });
}

void UnitNetworks::Backward(const float* by_outputs, const float* parameters, float* gradients,
                            float* by_inputs) {
  parallel_.Run(options_.num_networks, [&](int /*worker*/, int index) {
    const auto i = static_cast<size_t>(index);
    const Bf16Section section(*BestBf16Kernels());
    networks_[i]->Backward(
        by_outputs + i * ArraySize(rows_, options_.num_outputs), parameters + i * num_parameters(),
        gradients == nullptr ? nullptr : gradients + i * num_parameters(),
        by_inputs == nullptr ? nullptr : by_inputs + i * ArraySize(rows_, options_.num_inputs));
  });
}

}  // namespace pyfastenv
