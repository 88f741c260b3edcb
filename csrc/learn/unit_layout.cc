#include "learn/unit_layout.h"

#include <cmath>
#include <numeric>

#include "learn/array_size.h"

namespace pyfastenv {

namespace {

constexpr int kExpansion = 4;  // how much wider a block is inside

// as in pyfastenv/nn/unit_networks.py
constexpr double kLayerEps = 1e-16;
constexpr double kNormEps = 1e-8;

void ScaleTo(double length, float* values, size_t size, double eps) {
  constexpr size_t kSums = 8;  // side by side: one would wait for itself
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) {
      const double value = values[i + k];
      sums[k] += value * value;
    }
  }
  for (; i < size; ++i) sums[0] += static_cast<double>(values[i]) * values[i];
  const double squares = std::accumulate(sums, sums + kSums, 0.0);
  const auto factor = static_cast<float>(length / std::sqrt(squares + eps));
  for (i = 0; i < size; ++i) values[i] *= factor;
}

}  // namespace

UnitLayout::UnitLayout(const UnitOptions& options) {
  const auto norm = [this](int size) {
    const UnitNorm result{size, num_parameters, num_moments};
    num_parameters += ArraySize(2, size);
    num_moments += ArraySize(2, size);
    return result;
  };
  const auto layer = [this](int in, int out) {
    const UnitLayer result{in, out, num_parameters};
    num_parameters += ArraySize(out, in);
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

void UnitLayout::Project(float* parameters) const {
  const auto layer = [parameters](const UnitLayer& place) {
    for (int i = 0; i < place.out; ++i) {
      ScaleTo(1.0, parameters + place.weights + ArraySize(i, place.in), ArraySize(1, place.in),
              kLayerEps);
    }
  };
  const auto norm = [parameters](const UnitNorm& place) {
    ScaleTo(std::sqrt(place.size), parameters + place.parameters, ArraySize(2, place.size),
            kNormEps);
  };
  norm(input);
  layer(first);
  for (const Block& block : blocks) {
    layer(block.expand);
    norm(block.inner);
    layer(block.contract);
    norm(block.outer);
  }
  ScaleTo(std::sqrt(last.in), parameters + rms_weights, ArraySize(1, last.in), kNormEps);
  layer(last);
}

}  // namespace pyfastenv
