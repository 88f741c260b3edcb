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

/// Fails when told to.
class LateEnv final : public CountingEnv {
 public:
  struct Plan {
    std::atomic<bool> observe_throws{false};
    // Step throws from this call on, counted over all environments; -1: never
    std::atomic<int> steps_until_throw{-1};
  };

  explicit LateEnv(Plan* plan) : plan_(plan) {}

  StepResult Step(const Action& action, Random& random, InfoRow info) override {
    if (plan_->steps_until_throw >= 0 && plan_->steps_until_throw.fetch_sub(1) <= 0) {
      plan_->steps_until_throw = 0;  // and so for ever
      throw std::runtime_error("told to throw");
    }
    return CountingEnv::Step(action, random, info);
  }
  void Observe(double* obs) const override {
    if (plan_->observe_throws) throw std::runtime_error("cannot look");
    CountingEnv::Observe(obs);
  }

 private:
  Plan* plan_;
};

class Late : public ::testing::Test {
 protected:
  Late() : env([this] { return std::make_unique<LateEnv>(&plan); }, MakeOptions(kEnvs, 1)) {
    env.Seed(std::vector<std::vector<uint32_t>>(kEnvs, {1}));
    Reset();
  }

  std::vector<EnvFailure> Reset() {
    const double options[] = {0.0};
    return env.Reset(ids, {}, options, out.Views(), Never).failures;
  }
  std::vector<EnvFailure> Step() {
    const std::vector<float> actions(kEnvs, 0.0F);
    return env.Step({actions.data(), DType::kFloat32, sizeof(float)}, out.Views(), Never).failures;
  }
  std::vector<uint8_t> State() {
    std::vector<uint8_t> states(kEnvs * env.state_bytes());
    EXPECT_TRUE(env.GetState(ids, states));
    return states;
  }

  LateEnv::Plan plan;
  VectorEnv env;
  const std::vector<int32_t> ids = {0, 1, 2, 3};
  Results out{kEnvs};
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
  EXPECT_EQ(Reset().size(), static_cast<size_t>(kEnvs));
  EXPECT_EQ(State(), before);
}

TEST_F(Late, ARolloutThatFailsAgainWhenRunAgainEndsThereAndNotTheProcess) {
  constexpr int kSteps = 12;
  Mlp mlp(1, {CountingEnv::kObsSize, 1}, Activation::kTanh);
  const float zeros[CountingEnv::kObsSize] = {};
  mlp.SetLayer(0, zeros, zeros);
  PolicyOptions options;
  options.distribution = Distribution::kDeterministic;
  options.action_low = {-1.0F};
  options.action_high = {1.0F};
  const Policy policy(std::move(mlp), std::move(options));

  RolloutArrays rolled(kSteps, kEnvs);
  const auto before = State();
  // the first environment's third step fails, and from then on every step of everyone
  plan.steps_until_throw = 2;
  const auto outcome = env.RunRollout({&policy, {}, kSteps, rolled.Views()}, Never);
  ASSERT_EQ(outcome.failures.size(), static_cast<size_t>(kEnvs));
  for (const auto& failure : outcome.failures) {
    EXPECT_NE(failure.message.find("told to throw"), std::string::npos);
  }
  EXPECT_EQ(State(), before);  // where their segments began
  EXPECT_EQ(rolled.last_obs, out.obs);
  EXPECT_EQ(rolled.rewards, std::vector<double>(rolled.Size(), 0.0));
}

}  // namespace
}  // namespace pyfastenv::testing
