// Mlp: activations, scratch, several inputs. Outputs are held against float64, for odd sizes, every
// depth and several networks, by tests/python/test_rollout.py.
#include "nn/mlp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace pyfastenv {

void DenseBaseline(const DenseLayer& layer, int count, const float* const* x, Activation activation,
                   float* const* y);

namespace {

constexpr Activation kActivations[] = {Activation::kIdentity, Activation::kTanh, Activation::kRelu,
                                       Activation::kElu, Activation::kSilu};

double Reference(Activation activation, double x) {
  switch (activation) {
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kRelu:
      return x > 0.0 ? x : 0.0;
    case Activation::kElu:
      return x > 0.0 ? x : std::expm1(x);
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kIdentity:
      break;
  }
  return x;
}

/// K networks of random numbers.
struct Networks {
  Networks(int k, const std::vector<int>& sizes, Activation activation, uint32_t seed,
           bool layer_norm = false)
      : mlp(k, sizes, activation, layer_norm) {
    std::mt19937 random(seed);
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      const auto in = static_cast<size_t>(sizes[i]);
      const auto out = static_cast<size_t>(sizes[i + 1]);
      std::normal_distribution<float> draw(0.0F, 1.5F / std::sqrt(static_cast<float>(in)));
      std::vector<float> weights(static_cast<size_t>(k) * in * out);
      std::vector<float> biases(static_cast<size_t>(k) * out);
      for (float& w : weights) w = draw(random);
      for (float& b : biases) b = draw(random);
      mlp.SetLayer(static_cast<int>(i), weights.data(), biases.data());
      if (!layer_norm || i + 2 == sizes.size()) continue;
      std::vector<float> norm(2 * biases.size());
      for (float& x : norm) x = draw(random);
      mlp.SetNorm(static_cast<int>(i), norm.data());
    }
  }

  std::vector<float> Forward(int network, const std::vector<float>& input,
                             Mlp::Scratch& scratch) const {
    std::copy(input.begin(), input.end(), scratch.input());
    const float* y = mlp.Forward(network, scratch);
    return {y, y + mlp.output_size()};
  }
  std::vector<float> Forward(int network, const std::vector<float>& input) const {
    Mlp::Scratch scratch(mlp);
    return Forward(network, input, scratch);
  }

  Mlp mlp;
};

std::vector<float> Input(int size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<float> input(static_cast<size_t>(size));
  for (float& x : input) x = draw(random);
  return input;
}

class MlpOf : public ::testing::TestWithParam<Activation> {};
INSTANTIATE_TEST_SUITE_P(Activations, MlpOf, ::testing::ValuesIn(kActivations));

// one neuron: x -> activation(x)
float Apply(Activation activation, float x) {
  Mlp mlp(1, {1, 1, 1}, activation);
  const float one = 1.0F;
  const float zero = 0.0F;
  mlp.SetLayer(0, &one, &zero);
  mlp.SetLayer(1, &one, &zero);
  Mlp::Scratch scratch(mlp);
  scratch.input()[0] = x;
  return *mlp.Forward(0, scratch);
}

TEST_P(MlpOf, TheActivationIsGoodToAFewRoundings) {
  std::vector<float> inputs = {0.0F, 1e-30F, 1e-4F, 0.3465F, 0.3466F, 43.9F, 44.1F, 87.1F, 88.3F};
  for (float x = 0.0F; x < 100.0F; x += 0.037F) inputs.push_back(x);
  for (const float x : {1e3F, 1e6F, 1e20F}) inputs.push_back(x);
  for (const float magnitude : inputs) {
    for (const float x : {magnitude, -magnitude}) {
      const double expected = Reference(GetParam(), x);
      EXPECT_NEAR(Apply(GetParam(), x), expected, 4e-7 * std::max(1.0, std::fabs(expected))) << x;
    }
  }
}

TEST(Mlp, TanhIsGoodToAFewRoundingsNearZeroAndAtMostOne) {
  for (float x = 1e-30F; x < 20.0F; x *= 1.003F) {
    const float y = Apply(Activation::kTanh, x);
    EXPECT_NEAR(y / std::tanh(static_cast<double>(x)), 1.0, 4e-7) << x;
    EXPECT_LE(y, 1.0F) << x;
    EXPECT_EQ(Apply(Activation::kTanh, -x), -y);
  }
}

TEST_P(MlpOf, NanStaysNan) {
  EXPECT_TRUE(std::isnan(Apply(GetParam(), std::numeric_limits<float>::quiet_NaN())));
  EXPECT_FALSE(std::isnan(Apply(GetParam(), 1e30F)));
}

// nothing of an input, not even NaN, is left for the next
TEST_P(MlpOf, ScratchKeepsNothing) {
  const Networks networks(2, {17, 65, 7, 17, 1}, GetParam(), 9);
  Mlp::Scratch scratch(networks.mlp);
  const auto input = Input(17, 3);
  const auto expected = networks.Forward(0, input);
  networks.Forward(1, Input(17, 4), scratch);
  networks.Forward(0, std::vector<float>(17, std::numeric_limits<float>::quiet_NaN()), scratch);
  EXPECT_EQ(networks.Forward(0, input, scratch), expected);
}

// whatever stands beside an input, its outputs have the same bits
TEST_P(MlpOf, SeveralInputsAreThoseAlone) {
  for (const auto& [sizes, layer_norm] : {std::pair{std::vector{17, 64, 64, 6}, false},
                                          {{376, 40, 17}, false},
                                          {{3, 72}, false},
                                          {{17, 60, 37, 6}, true}}) {
    const Networks networks(2, sizes, GetParam(), 6, layer_norm);
    for (const size_t count : {2U, 3U, 7U, 8U, 16U}) {
      std::vector<Mlp::Scratch> memory;
      std::vector<Mlp::Scratch*> scratches;
      for (size_t n = 0; n < count; ++n) memory.emplace_back(networks.mlp);
      for (size_t n = 0; n < count; ++n) {
        scratches.push_back(&memory[n]);
        const auto input = Input(sizes[0], static_cast<uint32_t>(n));
        std::copy(input.begin(), input.end(), memory[n].input());
      }
      std::vector<const float*> outputs(count);
      networks.mlp.Forward(1, scratches, outputs.data());
      for (size_t n = 0; n < count; ++n) {
        EXPECT_EQ(std::vector<float>(outputs[n], outputs[n] + sizes.back()),
                  networks.Forward(1, Input(sizes[0], static_cast<uint32_t>(n))))
            << "input " << n << " of " << count;
      }
    }
  }
}

// what any x86-64 runs and what this processor runs
TEST_P(MlpOf, KernelsAgree) {
  constexpr int kIn = 24;
  constexpr int kOut = 72;
  AlignedFloats weights(static_cast<size_t>(kIn) * kOut);
  AlignedFloats biases(kOut);
  AlignedFloats x(kIn);
  std::mt19937 random(2);
  std::normal_distribution<float> draw(0.0F, 0.3F);
  for (int i = 0; i < kIn * kOut; ++i) weights.data()[i] = draw(random);
  for (int i = 0; i < kOut; ++i) biases.data()[i] = draw(random);
  for (int i = 0; i < kIn; ++i) x.data()[i] = 5.0F * draw(random);
  const DenseLayer layer{weights.data(), biases.data(), kIn, kOut};
  AlignedFloats baseline(kOut);
  AlignedFloats fastest(kOut);
  const float* const inputs[] = {x.data()};
  float* const outputs[] = {baseline.data(), fastest.data()};
  DenseBaseline(layer, 1, inputs, GetParam(), outputs);
  for (const int count : {1, 8}) {
    BestDense(count)(layer, 1, inputs, GetParam(), outputs + 1);
    for (int i = 0; i < kOut; ++i) EXPECT_NEAR(baseline.data()[i], fastest.data()[i], 5e-6);
  }
}

}  // namespace
}  // namespace pyfastenv
