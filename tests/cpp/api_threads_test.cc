// Every public method of VectorEnv from 2 to 8 threads at once, at random.
//
// What the calls return is others' business; here nothing may race, hang or crash (`make tsan`,
// `make asan`), calls may only be told that they came at the wrong moment, and afterwards the
// environments go on as a twin that was left alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "counting_env.h"

namespace pyfastenv {
namespace {

using namespace pyfastenv::testing;  // NOLINT

constexpr int kEnvs = 7;
constexpr int kCalls = 300;  // of each thread

/// Drifts about zero whatever it sees; Gaussian.
Policy SmallPolicy() {
  Mlp mlp(1, {CountingEnv::kObsSize, 1}, Activation::kTanh);
  const float weights[CountingEnv::kObsSize] = {};
  const float biases[] = {0.0F};
  mlp.SetLayer(0, weights, biases);
  PolicyOptions options;
  options.distribution = Distribution::kGaussian;
  options.action_low = {-1.5F};
  options.action_high = {1.5F};
  options.log_std = {0.0F};
  return {std::move(mlp), options};
}

/// One thread's calls of a vector environment that others call too.
class Caller {
 public:
  Caller(VectorEnv& env, uint32_t seed)
      : env_(env), random_(seed), results_(kEnvs), policy_(SmallPolicy()) {
    calls_ = {
        [this] { Step(); },           [this] { Reset(); },     [this] { RunRollout(); },
        [this] { Send(); },           [this] { SendReset(); }, [this] { Receive(); },
        [this] { GetAndSetState(); }, [this] { SetTasks(); },  [this] { SetField(); },
        [this] { ReadOne(); },
    };
  }

  /// False once the environments are closed.
  bool CallSomething() {
    const auto refusal =
        RefusalOf({Code::kClosed, Code::kBusy, Code::kNothingPending, Code::kResetNeeded},
                  calls_[random_() % calls_.size()]);
    return refusal != Code::kClosed;
  }

 private:
  std::vector<int32_t> SomeIds() {
    std::vector<int32_t> ids(kEnvs);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random_);
    ids.resize(1 + random_() % kEnvs);
    return ids;
  }

  ActionViews SomeActions() {
    actions_ = ActionsOf(static_cast<int>(random_() % 100), AllIds());
    return {actions_.data(), DType::kFloat32, sizeof(float)};
  }

  static std::vector<int32_t> AllIds() {
    std::vector<int32_t> ids(kEnvs);
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }

  void Step() {
    const auto outcome = env_.Step(SomeActions(), results_.Views(), Never);
    EXPECT_TRUE(outcome.failures.empty());
    for (const auto& last : outcome.finals) EXPECT_NE(last, nullptr);
  }

  void Reset() {
    const double options[] = {0.0};
    const auto ids = SomeIds();
    const std::vector<std::vector<uint32_t>> seeds(ids.size(), {static_cast<uint32_t>(random_())});
    EXPECT_TRUE(env_.Reset(ids, seeds, options, results_.Views(), Never).failures.empty());
  }

  void RunRollout() {
    RolloutArrays out(5, kEnvs);
    EXPECT_TRUE(env_.RunRollout({&policy_, {}, 5, out.Views()}, Never).failures.empty());
  }

  void Send() { env_.Send(SomeIds(), SomeActions()); }

  void SendReset() {
    const double options[] = {0.0};
    env_.SendReset(SomeIds(), {}, options);
  }

  void Receive() {
    auto received = env_.Receive({1, 3, 0.001}, Never);
    Results results(static_cast<int>(received.ids.size()));
    env_.Gather(received, results.Views());
  }

  // the layout may grow between two calls
  void GetAndSetState() {
    const auto ids = SomeIds();
    std::vector<uint8_t> states(ids.size() * env_.state_bytes());
    while (!env_.GetState(ids, states)) states.resize(ids.size() * env_.state_bytes());
    try {
      env_.SetState(ids, states);
    } catch (const UsageError& error) {
      if (error.code() != Code::kValue) throw;
    }
  }

  void SetTasks() {
    const auto ids = SomeIds();
    std::vector<double> tasks(ids.size(), 0.25);
    env_.SetTasks(ids, tasks.data());
    tasks.resize(kEnvs);
    env_.GetTasks(AllIds(), tasks.data());
  }

  void SetField() {
    const auto ids = SomeIds();
    std::vector<double> values(2 * kEnvs, 0.5);
    env_.SetField(env_.AddField("gain"), ids, values.data());
    EXPECT_EQ(env_.GetField("gain").size(), env_.DescribeField("gain").size() * kEnvs);
  }

  void ReadOne() {
    const auto id = static_cast<int32_t>(random_() % kEnvs);
    EXPECT_LE(env_.CopyRow(id).fields.size(), 1U);
    env_.RandomState(id);
    EXPECT_GE(env_.stats().steps, 0);
  }

  VectorEnv& env_;
  std::mt19937 random_;
  Results results_;
  Policy policy_;
  std::vector<float> actions_;
  std::vector<std::function<void()>> calls_;
};

// threads that call, threads of the pool
class ApiThreads : public ::testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(All, ApiThreads,
                         ::testing::Combine(::testing::Values(2, 4, 8), ::testing::Values(1, 3)));

TEST_P(ApiThreads, CallWhatTheyLikeAndLeaveItAsGoodAsNew) {
  const auto [callers, num_threads] = GetParam();
  Started runner(MakeOptions(kEnvs, num_threads, AutoresetMode::kSameStep, 9));
  RunThreads(callers, [&](int i) {
    Caller caller(runner.env, static_cast<uint32_t>(i));
    for (int call = 0; call < kCalls; ++call) ASSERT_TRUE(caller.CallSomething());
  });
  while (!RefusalOf({Code::kNothingPending}, [&] { runner.Receive(); })) {
  }

  Started twin(MakeOptions(kEnvs, 1, AutoresetMode::kSameStep, 9));
  for (Runner* each : {&runner, &twin}) {
    const std::vector<double> ones(2 * kEnvs, 1.0);
    each->env.SetField(each->env.AddField("gain"), each->all, ones.data());
    each->env.SetTasks(each->all, ones.data());
    each->Start(11);
  }
  for (int t = 0; t < 20; ++t) {
    runner.Step(ActionsOf(t, runner.all));
    twin.Step(ActionsOf(t, twin.all));
    ASSERT_TRUE(runner.out == twin.out);
  }
  EXPECT_EQ(runner.State(), twin.State());
}

TEST_P(ApiThreads, CallUntilOneOfThemCloses) {
  const auto [callers, num_threads] = GetParam();
  for (uint32_t round = 0; round < 10; ++round) {
    Started runner(MakeOptions(kEnvs, num_threads, AutoresetMode::kSameStep, 9));
    RunThreads(callers, [&](int i) {
      Caller caller(runner.env, 100 * round + static_cast<uint32_t>(i));
      if (i == 0) {
        for (uint32_t call = 0; call < 10 * round; ++call) caller.CallSomething();
        runner.env.Close();
      }
      while (caller.CallSomething()) {
      }
    });
    EXPECT_TRUE(runner.env.closed());
  }
}

}  // namespace
}  // namespace pyfastenv
