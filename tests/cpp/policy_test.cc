// Policy: what is drawn from which numbers of the stream, and its log-probability.
#include "nn/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
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
constexpr double kLogTwoPi = 1.8378770664093453;
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

double NormalLogDensity(double x, double mean, double log_std) {
  const double z = (x - mean) / std::exp(log_std);
  return -0.5 * (z * z + kLogTwoPi) - log_std;
}

// ---- categorical ----

const std::vector<float> kLogits = {0.3F, -1.0F, 2.0F, -0.2F, 0.3F};

std::vector<double> Probabilities(const std::vector<float>& logits) {
  std::vector<double> p;
  double sum = 0.0;
  for (const float logit : logits) {
    p.push_back(std::exp(static_cast<double>(logit)));
    sum += p.back();
  }
  for (double& value : p) value /= sum;
  return p;
}

TEST(Categorical, InvertsTheDistributionFunctionAtOneUniformNumber) {
  auto [policy, scratch, random] = Acting(Constant({kLogits}, Options(Distribution::kCategorical)));
  const auto p = Probabilities(kLogits);
  Random twin = random;
  for (int draw = 0; draw < 2000; ++draw) {
    policy.Act(0, kObs, random, scratch);
    double left = twin.NextDouble();
    size_t expected = 0;
    while (expected + 1 < p.size() && left >= p[expected]) left -= p[expected++];
    ASSERT_EQ(scratch.index, static_cast<int64_t>(expected));
    ASSERT_NEAR(scratch.log_prob, std::log(p[expected]), 1e-6);
  }
}

TEST(Categorical, FrequenciesFollowTheLogits) {
  constexpr int kDraws = 100'000;
  auto [policy, scratch, random] = Acting(Constant({kLogits}, Options(Distribution::kCategorical)));
  const auto p = Probabilities(kLogits);
  std::vector<int> counts(p.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    policy.Act(0, kObs, random, scratch);
    ++counts[static_cast<size_t>(scratch.index)];
  }
  double chi_square = 0.0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = kDraws * p[i];
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 23.5);  // 4 degrees of freedom: one seed in 10,000 is above
}

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

TEST(Categorical, HugeLogitsAreFine) {
  auto [policy, scratch, random] =
      Acting(Constant({{1e30F, 1e30F, -1e30F}}, Options(Distribution::kCategorical)));
  policy.Act(0, kObs, random, scratch);
  EXPECT_NEAR(scratch.log_prob, -std::log(2.0), 1e-6);
}

// ---- Gaussian ----

const std::vector<float> kMeans = {0.25F, -2.0F};
const std::vector<float> kLogStds = {-0.5F, 0.75F};

TEST(Gaussian, TakesOneNormalNumberPerDimensionInOrder) {
  PolicyOptions options = Options(Distribution::kGaussian);
  options.log_std = kLogStds;
  auto [policy, scratch, random] = Acting(Constant({kMeans}, options));
  Random twin = random;
  for (int draw = 0; draw < 1000; ++draw) {
    policy.Act(0, kObs, random, scratch);
    double log_prob = 0.0;
    for (size_t i = 0; i < 2; ++i) {
      const double expected = kMeans[i] + std::exp(kLogStds[i]) * twin.StandardNormal();
      ASSERT_NEAR(scratch.action[i], expected, 2e-6);
      ASSERT_EQ(scratch.env_action[i], std::clamp(scratch.action[i], -1.0F, 3.0F));
      log_prob += NormalLogDensity(scratch.action[i], kMeans[i], kLogStds[i]);
    }
    ASSERT_NEAR(scratch.log_prob, log_prob, 5e-6);
  }
}

TEST(Gaussian, MomentsAreThoseAskedFor) {
  constexpr int kDraws = 100'000;
  PolicyOptions options = Options(Distribution::kGaussian);
  options.log_std = kLogStds;
  auto [policy, scratch, random] = Acting(Constant({kMeans}, options));
  double sum[3] = {};  // of z, z², z0 z1
  for (int draw = 0; draw < kDraws; ++draw) {
    policy.Act(0, kObs, random, scratch);
    double z[2];
    for (size_t i = 0; i < 2; ++i) z[i] = (scratch.action[i] - kMeans[i]) / std::exp(kLogStds[i]);
    sum[0] += z[0] + z[1];
    sum[1] += z[0] * z[0] + z[1] * z[1];
    sum[2] += z[0] * z[1];
  }
  // five standard errors
  EXPECT_NEAR(sum[0] / (2 * kDraws), 0.0, 5.0 * std::sqrt(0.5 / kDraws));
  EXPECT_NEAR(sum[1] / (2 * kDraws), 1.0, 5.0 * std::sqrt(1.0 / kDraws));
  EXPECT_NEAR(sum[2] / kDraws, 0.0, 5.0 * std::sqrt(1.0 / kDraws));
}

TEST(Gaussian, UnclippedActionsReachTheEnvironmentAsDrawn) {
  PolicyOptions options = Options(Distribution::kGaussian);
  options.log_std = {2.0F, 2.0F};
  options.clip_actions = false;
  auto [policy, scratch, random] = Acting(Constant({kMeans}, options));
  for (int draw = 0; draw < 50; ++draw) {
    policy.Act(0, kObs, random, scratch);
    EXPECT_EQ(scratch.env_action, scratch.action);
  }
}

TEST(Gaussian, TheNetworksLogStdIsItsSecondHalfAndIsClamped) {
  PolicyOptions options = Options(Distribution::kGaussian);
  options.log_std_min = -1.0F;
  options.log_std_max = 0.5F;
  const Policy policy = Constant({{0.25F, -2.0F, -7.0F, 7.0F}}, options);
  options.log_std = {-1.0F, 0.5F};
  const Policy given = Constant({kMeans}, options);
  Policy::Scratch scratch(policy);
  Policy::Scratch other(given);
  Random random = Stream();
  Random twin = random;
  for (int draw = 0; draw < 100; ++draw) {
    policy.Act(0, kObs, random, scratch);
    given.Act(0, kObs, twin, other);
    EXPECT_EQ(scratch.action, other.action);
    EXPECT_EQ(scratch.log_prob, other.log_prob);
  }
}

TEST(Gaussian, GreedyIsTheMeanAndDrawsNothing) {
  for (const auto distribution : {Distribution::kGaussian, Distribution::kTanhGaussian}) {
    PolicyOptions options = Options(distribution);
    options.log_std = kLogStds;
    options.greedy = true;
    auto [policy, scratch, random] = Acting(Constant({kMeans}, options));
    policy.Act(0, kObs, random, scratch);
    for (size_t i = 0; i < 2; ++i) {
      const bool squash = distribution == Distribution::kTanhGaussian;
      const double expected = squash ? 1.0 + 2.0 * std::tanh(kMeans[i]) : kMeans[i];
      EXPECT_NEAR(scratch.action[i], expected, 1e-6);
    }
    EXPECT_EQ(random.NextUint64(), Stream().NextUint64());
  }
}

TEST(TanhGaussian, LogProbIsOfTheScaledAction) {
  PolicyOptions options = Options(Distribution::kTanhGaussian);
  options.log_std = kLogStds;
  auto [policy, scratch, random] = Acting(Constant({kMeans}, options));
  Random twin = random;
  for (int draw = 0; draw < 1000; ++draw) {
    policy.Act(0, kObs, random, scratch);
    double log_prob = 0.0;
    for (size_t i = 0; i < 2; ++i) {
      const double u = kMeans[i] + std::exp(kLogStds[i]) * twin.StandardNormal();
      ASSERT_NEAR(scratch.action[i], 1.0 + 2.0 * std::tanh(u), 2e-6);
      log_prob += NormalLogDensity(u, kMeans[i], kLogStds[i]) - std::log(2.0) +
                  2.0 * std::log(std::cosh(u));
    }
    ASSERT_NEAR(scratch.log_prob, log_prob, 1e-5 * std::max(1.0, std::fabs(log_prob)));
    ASSERT_EQ(scratch.env_action, scratch.action);
  }
}

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

TEST(Deterministic, NoiseIsAddedBeforeClipping) {
  PolicyOptions options = Options(Distribution::kDeterministic);
  options.noise = 0.4F;
  auto [policy, scratch, random] = Acting(Constant({kMeans}, options));
  Random twin = random;
  int clipped = 0;
  for (int draw = 0; draw < 500; ++draw) {
    policy.Act(0, kObs, random, scratch);
    for (size_t i = 0; i < 2; ++i) {
      const double noisy = std::tanh(kMeans[i]) + 0.4F * twin.StandardNormal();
      ASSERT_NEAR(scratch.action[i], 1.0 + 2.0 * std::clamp(noisy, -1.0, 1.0), 2e-6);
      if (std::fabs(noisy) > 1.0) ++clipped;
    }
    ASSERT_EQ(scratch.log_prob, 0.0F);
    ASSERT_EQ(scratch.env_action, scratch.action);
  }
  EXPECT_GT(clipped, 100);
}

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

TEST(Observations, AreShiftedScaledAndClipped) {
  PolicyOptions options = Options(Distribution::kGaussian);
  options.greedy = true;
  options.clip_actions = false;
  options.log_std = {0.0F, 0.0F};
  options.obs_mean = {0.25F, 1.0F};
  options.obs_scale = {4.0F, 10.0F};
  const Policy unclipped = Mirror(options);
  Policy::Scratch scratch(unclipped);
  Random random;
  unclipped.Act(0, kObs, random, scratch);
  EXPECT_EQ(scratch.action, (std::vector<float>{1.0F, -30.0F}));
  options.obs_clip = 5.0F;
  const Policy clipped = Mirror(options);
  Policy::Scratch clipped_scratch(clipped);
  clipped.Act(0, kObs, random, clipped_scratch);
  EXPECT_EQ(clipped_scratch.action, (std::vector<float>{1.0F, -5.0F}));
}

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

TEST(Policies, EachHasItsOwnNumbers) {
  PolicyOptions options = Options(Distribution::kGaussian);
  options.log_std = {0.0F, 0.0F, 1.0F, -1.0F, -2.0F, 0.25F};
  options.obs_mean = {0.0F, 0.0F, 1.0F, 2.0F, 3.0F, 4.0F};
  options.obs_scale = {1.0F, 1.0F, 2.0F, 2.0F, 3.0F, 3.0F};
  const std::vector<std::vector<float>> means = {{0.0F, 0.1F}, {1.0F, 1.1F}, {2.0F, 2.1F}};
  const Policy policies = Constant(means, options);
  EXPECT_EQ(policies.num_policies(), 3);
  for (size_t k = 0; k < 3; ++k) {
    PolicyOptions own = options;
    const auto part = [k](const std::vector<float>& all) {
      return std::vector<float>{all[2 * k], all[2 * k + 1]};
    };
    own.log_std = part(options.log_std);
    own.obs_mean = part(options.obs_mean);
    own.obs_scale = part(options.obs_scale);
    const Policy alone = Constant({means[k]}, own);
    Policy::Scratch scratch(policies);
    Policy::Scratch other(alone);
    Random random = Stream();
    Random twin = random;
    policies.Act(static_cast<int>(k), kObs, random, scratch);
    alone.Act(0, kObs, twin, other);
    EXPECT_EQ(scratch.action, other.action);
    EXPECT_EQ(scratch.log_prob, other.log_prob);
  }
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

// a density that float32 does not hold
TEST(Gaussian, AStdOfZeroThrows) {
  PolicyOptions options = Options(Distribution::kGaussian);
  options.log_std = {-200.0F, 0.0F};
  auto [policy, scratch, random] = Acting(Constant({kMeans}, options));
  EXPECT_THROW(policy.Act(0, kObs, random, scratch), std::runtime_error);
}

}  // namespace
}  // namespace pyfastenv
