// An environment that raises keeps what it was, and the batch survives: what CountingEnv can do and
// MuJoCo's cannot (those: tests/python/test_failures.py).
#include <gtest/gtest.h>

#include "counting_env.h"

namespace pyfastenv {
namespace {

using namespace pyfastenv::testing;  // NOLINT

constexpr int kEnvs = 9;

/// Actions that make `throwing` raise and step the others.
std::vector<float> Throwing(const std::vector<int32_t>& throwing, float action = kThrow) {
  std::vector<float> actions(kEnvs, 0.5F);
  for (const int32_t id : throwing) actions[static_cast<size_t>(id)] = action;
  return actions;
}

class Failures : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Failures, ::testing::Values(1, 3, 7));

TEST_P(Failures, OfTheFirstResetLeavesItNeeded) {
  Started runner(MakeOptions(kEnvs, GetParam()));
  Runner fresh(MakeOptions(kEnvs, GetParam()));
  fresh.Reset(fresh.all, kThrowingStart);
  ExpectUsageError(Code::kResetNeeded, "step: reset environments 0, 1",
                   [&] { fresh.StepAll(0.5F); });
}

TEST_P(Failures, OfAnotherTypeThanException) {
  Started runner(MakeOptions(kEnvs, GetParam()));
  const auto outcome = runner.Step(Throwing({3}, kThrowOther));
  ASSERT_EQ(FailedIds(outcome.failures), std::vector<int32_t>{3});
  EXPECT_EQ(outcome.failures[0].message, "unknown exception");
}

// received failures are no results: they are reported, free again and unchanged
TEST_P(Failures, OfARequest) {
  // in SAME_STEP mode no step is a reset, which would ignore its action
  Started runner(MakeOptions(kEnvs, GetParam(), AutoresetMode::kSameStep));
  Started twin(MakeOptions(kEnvs, 1, AutoresetMode::kSameStep));
  for (int i = 0; i < 60; ++i) {
    const std::vector<int32_t> throwing = {i % 4, 4 + i % 5};
    const auto state = runner.State(throwing);
    runner.Send(runner.all, Throwing(throwing));
    std::vector<int32_t> ids, failed;
    while (ids.size() + failed.size() < kEnvs) {
      const auto ready = runner.Receive(2, 3);
      ids.insert(ids.end(), ready.ids.begin(), ready.ids.end());
      for (const int32_t id : FailedIds(ready.failures)) failed.push_back(id);
    }
    std::sort(failed.begin(), failed.end());
    ASSERT_EQ(failed, throwing);
    ASSERT_EQ(runner.State(throwing), state);
    // alone, they catch up
    runner.Send(throwing, {0.5F, 0.5F});
    ASSERT_TRUE(runner.Receive().failures.empty());
    twin.StepAll(0.5F);
    ASSERT_TRUE(runner.out == twin.out);
  }
}

// the step of a failing SAME_STEP environment leaves no final step behind
TEST_P(Failures, InSameStepMode) {
  Started runner(MakeOptions(kEnvs, GetParam(), AutoresetMode::kSameStep, 1));
  runner.Step(Throwing({6}));
  EXPECT_TRUE(runner.out.finals[6].empty());
  EXPECT_EQ(runner.out.kinds[6], kFailed);
  EXPECT_EQ(runner.out.kinds[5], kResetInfo | kFinal);
}

}  // namespace
}  // namespace pyfastenv
