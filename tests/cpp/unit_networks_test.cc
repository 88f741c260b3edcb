// Compared with PyTorch in tests/python/test_unit_networks.py; here: threads, fewer rows.
#include "learn/unit_networks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace pyfastenv {
namespace {

constexpr int kRows = 45;  // no multiples of a tile anywhere
constexpr int kInputs = 5;
constexpr int kOutputs = 3;
constexpr int kNetworks = 4;

UnitOptions Options(int num_threads) {
  UnitOptions options;
  options.num_inputs = kInputs;
  options.num_outputs = kOutputs;
  options.width = 20;
  options.num_blocks = 2;
  options.num_networks = kNetworks;
  options.max_rows = kRows;
  options.num_threads = num_threads;
  return options;
}

struct Fit {
  explicit Fit(int num_threads)
      : networks(Options(num_threads)),
        parameters(kNetworks * networks.num_parameters()),
        moments(kNetworks * networks.num_moments(), 0.5F),
        gradients(parameters.size()),
        inputs(kNetworks * kRows * kInputs),
        outputs(kNetworks * kRows * kOutputs),
        by_inputs(inputs.size()) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& x : parameters) x = 0.3F + 0.2F * normal(random);
    for (float& x : inputs) x = normal(random);
    networks.Project(parameters.data());
  }

  // a step towards the sum of the inputs, with so many rows; returns the error before
  double Step(int rows) {
    networks.Forward(inputs.data(), rows, parameters.data(), moments.data(), true, outputs.data());
    std::vector<float> by_outputs(static_cast<size_t>(kNetworks * rows * kOutputs));
    double total = 0.0;
    for (size_t row = 0; row < static_cast<size_t>(kNetworks * rows); ++row) {
      float sum = 0.0F;
      for (size_t i = 0; i < kInputs; ++i) sum += inputs[row * kInputs + i];
      for (size_t i = 0; i < kOutputs; ++i) {
        const float error = outputs[row * kOutputs + i] - sum;
        by_outputs[row * kOutputs + i] = error / static_cast<float>(rows);
        total += error * error;
      }
    }
    networks.Backward(by_outputs.data(), parameters.data(), gradients.data(), by_inputs.data());
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i] -= 0.05F * gradients[i];
    networks.Project(parameters.data());
    return total / (kNetworks * rows);
  }

  UnitNetworks networks;
  std::vector<float> parameters, moments, gradients, inputs, outputs, by_inputs;
};

TEST(UnitNetworks, ThreadsDoNotChangeResults) {
  if (BestBf16Kernels() == nullptr) GTEST_SKIP() << "neither AMX nor AVX512-BF16 here";
  Fit one(1);
  Fit four(4);
  for (const int rows : {kRows, 7, 32, kRows}) {
    EXPECT_EQ(one.Step(rows), four.Step(rows));
  }
  EXPECT_EQ(one.parameters, four.parameters);
  EXPECT_EQ(one.moments, four.moments);
  EXPECT_EQ(one.by_inputs, four.by_inputs);
}

TEST(UnitNetworks, GradientsThatAreNotWantedAreNotWritten) {
  if (BestBf16Kernels() == nullptr) GTEST_SKIP() << "neither AMX nor AVX512-BF16 here";
  Fit fit(1);
  fit.networks.Forward(fit.inputs.data(), kRows, fit.parameters.data(), fit.moments.data(), false,
                       fit.outputs.data());
  const std::vector<float> moments(fit.moments.size(), 0.5F);
  EXPECT_EQ(fit.moments, moments);
  fit.networks.Backward(fit.outputs.data(), fit.parameters.data(), nullptr, fit.by_inputs.data());
  for (const float x : fit.gradients) EXPECT_EQ(x, 0.0F);
  double total = 0.0;
  for (const float x : fit.by_inputs) total += std::abs(x);
  EXPECT_GT(total, 0.0);
}

}  // namespace
}  // namespace pyfastenv
