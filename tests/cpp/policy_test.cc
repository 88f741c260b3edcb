// Policy: what is drawn at the edges of the numbers, and what throws. Distributions and log-
// probabilities are held against NumPy and PyTorch by tests/python/test_rollout.py.
#include "nn/policy.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace pyfastenv {
namespace {

constexpr int kObsSize = 2;
constexpr double kObs[kObsSize] = {0.5, -2.0};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// K policies whose outputs are constants: outputs[k] whatever the observation.
Policy Constant(const std::vector<std::vector<float>>& outputs, const PolicyOptions& options) {
  const int size = static_cast<int>(outputs[0].size());
  const int count = static_cast<int>(outputs.size());
  Mlp mlp(count, {kObsSize, size}, Activation::kTanh);
  const std::vector<float> weights(static_cast<size_t>(count) * kObsSize * outputs[0].size());
  std::vector<float> biases;
  for (const auto& row : outputs) biases.insert(biases.end(), row.begin(), row.end());
  mlp.SetLayer(0, weights.data(), biases.data());
  return {std::move(mlp), options};
}

/// A policy whose outputs are its normalised observation.
Policy Mirror(PolicyOptions options) {
  Mlp mlp(1, {kObsSize, kObsSize}, Activation::kTanh);
  const float weights[] = {1.0F, 0.0F, 0.0F, 1.0F};
  const float biases[] = {0.0F, 0.0F};
  mlp.SetLayer(0, weights, biases);
  return {std::move(mlp), std::move(options)};
}

PolicyOptions Options(Distribution distribution, int action_size = 2) {
  PolicyOptions options;
  options.distribution = distribution;
  if (distribution != Distribution::kCategorical) {
    options.action_low.assign(static_cast<size_t>(action_size), -1.0F);
    options.action_high.assign(static_cast<size_t>(action_size), 3.0F);
  }
  return options;
}

Random Stream(uint32_t seed = 3) {
  const uint32_t words[] = {seed};
  return Random(words);
}

/// What it takes to act: a policy, its scratch and a stream to draw from.
struct Actor {
  Policy policy;
  Policy::Scratch scratch;
  Random random;
};

Actor Acting(Policy policy) {
  Policy::Scratch scratch(policy);
  return {std::move(policy), std::move(scratch), Stream()};
}

// ---- categorical ----

TEST(Categorical, GreedyTakesTheFirstOfTheLargestAndDrawsNothing) {
  PolicyOptions options = Options(Distribution::kCategorical);
  options.greedy = true;
  auto [policy, scratch, random] = Acting(Constant({{1.0F, 5.0F, 5.0F}}, options));
  policy.Act(0, kObs, random, scratch);
  EXPECT_EQ(scratch.index, 1);
  EXPECT_EQ(random.NextUint64(), Stream().NextUint64());
}

// A stream whose next number is the largest below 1; PCG64 adds its increment to its state and
// gives the exclusive or of the two halves.
Random LargestNumber() {
  // low and high words of state and increment, then the rest
  const auto random = std::bit_cast<Random>(std::array<uint64_t, 5>{0, 0, ~uint64_t{0}, 0, 0});
  Random copy = random;
  EXPECT_EQ(copy.NextDouble(), std::nextafter(1.0, 0.0));
  return random;
}

TEST(Categorical, RoundingDrawsNoImpossibleAction) {
  for (const auto& logits : {std::vector<float>{0.1F, -200.0F}, {0.3F, 0.2F, -0.1F, -200.0F}}) {
    const Policy policy = Constant({logits}, Options(Distribution::kCategorical));
    Policy::Scratch scratch(policy);
    Random random = LargestNumber();
    policy.Act(0, kObs, random, scratch);
    EXPECT_EQ(scratch.index, static_cast<int64_t>(logits.size()) - 2);
    EXPECT_GT(scratch.log_prob, -3.0F);
  }
}

TEST(Categorical, EpsilonGreedyTakesNoActionBeyondTheLast) {
  PolicyOptions options = Options(Distribution::kCategorical);
  options.epsilon = 1.0F;
  const Policy policy = Constant({{2.0F, 1.0F, 0.0F}}, options);
  Policy::Scratch scratch(policy);
  Random random = LargestNumber();
  policy.Act(0, kObs, random, scratch);
  EXPECT_EQ(scratch.index, 2);
  EXPECT_NEAR(scratch.log_prob, -std::log(3.0), 1e-6);
}

TEST(Categorical, HugeLogitsAreFine) {
  auto [policy, scratch, random] =
      Acting(Constant({{1e30F, 1e30F, -1e30F}}, Options(Distribution::kCategorical)));
  policy.Act(0, kObs, random, scratch);
  EXPECT_NEAR(scratch.log_prob, -std::log(2.0), 1e-6);
}

// ---- Gaussian ----

const std::vector<float> kMeans = {0.25F, -2.0F};

TEST(TanhGaussian, LogProbIsFiniteWhereTanhIsOne) {
  PolicyOptions options = Options(Distribution::kTanhGaussian);
  options.log_std = {0.0F, 0.0F};
  auto [policy, scratch, random] = Acting(Constant({{60.0F, -60.0F}}, options));
  policy.Act(0, kObs, random, scratch);
  EXPECT_EQ(scratch.action, (std::vector<float>{3.0F, -1.0F}));
  // log(1 - tanh(u)²) = log 4 - 2 |u|
  EXPECT_NEAR(scratch.log_prob, 240.0, 20.0);
}

// ---- deterministic ----

TEST(Deterministic, DrawsNothingWithoutNoiseOrWhenGreedy) {
  for (const bool greedy : {false, true}) {
    PolicyOptions options = Options(Distribution::kDeterministic);
    options.noise = greedy ? 0.4F : 0.0F;
    options.greedy = greedy;
    auto [policy, scratch, random] = Acting(Constant({kMeans}, options));
    policy.Act(0, kObs, random, scratch);
    EXPECT_NEAR(scratch.action[0], 1.0 + 2.0 * std::tanh(0.25), 1e-6);
    EXPECT_EQ(random.NextUint64(), Stream().NextUint64());
  }
}

// ---- observations, several policies, bad numbers ----

TEST(Observations, AreReadWhereTheNetworksInputsBegin) {
  PolicyOptions options = Options(Distribution::kGaussian);
  options.log_std = {0.0F, 0.0F};
  options.greedy = true;
  options.obs_mean = {0.25F, 0.0F};
  options.obs_scale = {2.0F, 1.0F};
  options.row_begin = 1;
  options.row_size = 4;
  auto [policy, scratch, random] = Acting(Mirror(options));
  EXPECT_EQ(policy.obs_size(), 4);
  const double row[] = {std::nan(""), 0.5, -0.5, std::nan("")};
  policy.Act(0, row, random, scratch);
  EXPECT_EQ(scratch.action, (std::vector<float>{0.5F, -0.5F}));
}

class NanIn : public ::testing::TestWithParam<Distribution> {};
INSTANTIATE_TEST_SUITE_P(Distributions, NanIn,
                         ::testing::Values(Distribution::kCategorical, Distribution::kGaussian,
                                           Distribution::kTanhGaussian,
                                           Distribution::kDeterministic));

TEST_P(NanIn, TheOutputsThrows) {
  for (const bool greedy : {false, true}) {
    for (int place = 0; place < 2; ++place) {
      PolicyOptions options = Options(GetParam());
      options.greedy = greedy;
      if (GetParam() != Distribution::kCategorical) options.log_std = {0.0F, 0.0F};
      auto [policy, scratch, random] = Acting(Mirror(options));
      double obs[kObsSize] = {0.5, -2.0};
      obs[place] = kNan;
      EXPECT_THROW(policy.Act(0, obs, random, scratch), std::runtime_error);
      EXPECT_NO_THROW(policy.Act(0, kObs, random, scratch));
    }
  }
}

TEST(NanInTheLogStd, Throws) {
  for (const bool greedy : {false, true}) {
    PolicyOptions options = Options(Distribution::kGaussian, 1);
    options.greedy = greedy;
    auto [policy, scratch, random] = Acting(Mirror(options));  // the second output is the log-std
    const double obs[] = {0.5, kNan};
    EXPECT_THROW(policy.Act(0, obs, random, scratch), std::runtime_error);
  }
}

}  // namespace
}  // namespace pyfastenv
