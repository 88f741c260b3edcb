// Environments that fail late: when all is computed and only the observation is missing, or when a
// rollout's failed segment is run again.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "counting_env.h"
#include "nn/policy.h"

namespace pyfastenv::testing {
namespace {

constexpr int kEnvs = 4;

/// Counts its steps in the row; fails when told to.
class LateEnv final : public Environment {
 public:
  struct Plan {
    std::atomic<bool> observe_throws{false};
    // Step throws from this call on, counted over all environments; -1: never
    std::atomic<int> steps_until_throw{-1};
  };

  explicit LateEnv(Plan* plan, SpecBuilder&& spec = {}) : Environment(spec), plan_(plan) {
    spec->obs_size = 1;
    spec->obs_low = {-1e9};
    spec->obs_high = {1e9};
    spec->action_low = {-1.0};
    spec->action_high = {1.0};
  }

  RowLayout InitialLayout() const override { return {1, 0, 0}; }
  std::vector<double> InitialRow() const override { return {0.0}; }
  RowField DescribeField(const std::string& name) const override {
    throw std::invalid_argument(name);
  }
  void Prepare(const RowLayout&) override {}
  void Adopt() noexcept override {}
  void Load(const double* row) override { count_ = row[0]; }
  void Save(double* row) const override { row[0] = count_; }
  void Reset(Random& random, std::span<const double>, InfoRow) override {
    count_ = std::floor(random.Uniform(0.0, 100.0));
  }
  StepResult Step(const Action&, Random&, InfoRow) override {
    if (plan_->steps_until_throw >= 0 && plan_->steps_until_throw.fetch_sub(1) <= 0) {
      plan_->steps_until_throw = 0;  // and so for ever
      throw std::runtime_error("told to throw");
    }
    count_ += 1.0;
    return {.reward = count_};
  }
  void Observe(double* obs) const override {
    if (plan_->observe_throws) throw std::runtime_error("cannot look");
    obs[0] = count_;
  }

 private:
  Plan* plan_;
  double count_ = 0.0;
};

class Late : public ::testing::Test {
 protected:
  Late() : env([this] { return std::make_unique<LateEnv>(&plan); }, MakeOptions(kEnvs, 1)) {
    env.Seed(std::vector<std::vector<uint32_t>>(kEnvs, {1}));
    env.Reset(ids, {}, {}, Views(), Never);
  }

  OutputViews Views() {
    return {obs.data(), rewards.data(), flags.data(), &flags[kEnvs], &flags[size_t{2} * kEnvs], {}};
  }
  std::vector<uint8_t> State() {
    std::vector<uint8_t> states(kEnvs * env.state_bytes());
    EXPECT_TRUE(env.GetState(ids, states));
    return states;
  }
  std::vector<EnvFailure> Step() {
    const std::vector<float> actions(kEnvs, 0.0F);
    return env.Step({actions.data(), DType::kFloat32, sizeof(float)}, Views(), Never).failures;
  }

  LateEnv::Plan plan;
  VectorEnv env;
  const std::vector<int32_t> ids = {0, 1, 2, 3};
  std::vector<double> obs = std::vector<double>(kEnvs);
  std::vector<double> rewards = std::vector<double>(kEnvs);
  std::vector<uint8_t> flags = std::vector<uint8_t>(size_t{3} * kEnvs);
};

TEST_F(Late, AnEnvironmentWhoseObservationFailsHasNotMoved) {
  const auto before = State();
  plan.observe_throws = true;
  const auto failures = Step();
  ASSERT_EQ(failures.size(), static_cast<size_t>(kEnvs));
  EXPECT_EQ(failures[0].message, "cannot look");
  EXPECT_EQ(State(), before);
  plan.observe_throws = false;
  EXPECT_TRUE(Step().empty());
  EXPECT_NE(State(), before);
}

TEST_F(Late, AnAutoresetWhoseObservationFailsHasNotMoved) {
  const auto before = State();
  plan.observe_throws = true;
  const auto outcome = env.Reset(ids, {}, {}, Views(), Never);
  EXPECT_EQ(outcome.failures.size(), static_cast<size_t>(kEnvs));
  EXPECT_EQ(State(), before);
}

TEST_F(Late, ARolloutThatFailsAgainWhenRunAgainEndsThereAndNotTheProcess) {
  constexpr int kSteps = 12;
  Mlp mlp(1, {1, 1}, Activation::kTanh);
  const float zero = 0.0F;
  mlp.SetLayer(0, &zero, &zero);
  PolicyOptions options;
  options.distribution = Distribution::kDeterministic;
  options.action_low = {-1.0F};
  options.action_high = {1.0F};
  const Policy policy(std::move(mlp), std::move(options));

  RolloutArrays out(kSteps, kEnvs, 1);
  std::vector<double> start(obs);
  // the first environment's third step fails, and from then on every step of everyone
  plan.steps_until_throw = 2;
  const auto outcome = env.RunRollout({&policy, {}, kSteps, out.Views()}, Never);
  ASSERT_EQ(outcome.failures.size(), static_cast<size_t>(kEnvs));
  for (const auto& failure : outcome.failures) {
    EXPECT_NE(failure.message.find("told to throw"), std::string::npos);
    const auto id = static_cast<size_t>(failure.env_id);
    EXPECT_EQ(env.CopyRow(failure.env_id).values[0], start[id]);  // where its segment began
    EXPECT_EQ(out.last_obs[id], start[id]);
    for (int t = 0; t < kSteps; ++t) EXPECT_EQ(out.rewards[out.Slot(t, failure.env_id)], 0.0);
  }
}

}  // namespace
}  // namespace pyfastenv::testing
