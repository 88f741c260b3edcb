// An environment that raises keeps what it was, and the batch survives.
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

void ExpectZeros(const Results& slot) {
  Results zeros(1);
  zeros.kinds[0] = kFailed;
  EXPECT_TRUE(slot == zeros);
}

class Failures : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Failures, ::testing::Values(1, 3, 7));

// row, stream, elapsed steps, flags and observation of those that raised are as before; the others'
// results are those of a batch where nobody raised
TEST_P(Failures, OfAStep) {
  Started runner(MakeOptions(kEnvs, GetParam(), AutoresetMode::kNextStep, 6));
  Started twin(MakeOptions(kEnvs, 1, AutoresetMode::kNextStep, 6));
  const std::vector<int32_t> throwing = {2, 7};
  for (int t = 0; t < 2; ++t) {
    runner.StepAll(0.5F);
    twin.StepAll(0.5F);
  }
  const auto state = runner.State(throwing);
  const auto outcome = runner.Step(Throwing(throwing));
  twin.StepAll(0.5F);
  ASSERT_EQ(FailedIds(outcome.failures), throwing);  // sorted
  EXPECT_EQ(outcome.failures[0].message, "told to throw at count 3");
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_EQ(runner.State(throwing), state);
  for (const int32_t id : runner.all) {
    const auto i = static_cast<size_t>(id);
    if (id == 2 || id == 7) {
      ExpectZeros(runner.out.Slot(i));
    } else {
      EXPECT_TRUE(runner.out.Slot(i) == twin.out.Slot(i));
    }
  }
  EXPECT_EQ(runner.env.stats().failures, 2);
  EXPECT_EQ(runner.env.stats().steps, 3 * kEnvs - 2);

  // they go on from where they were: one step behind the twin
  const std::vector<Results> expected = [&] {
    Started again(MakeOptions(kEnvs, 1, AutoresetMode::kNextStep, 6));
    std::vector<Results> trace;
    for (int t = 0; t < 12; ++t) {
      again.StepAll(0.5F);
      trace.push_back(again.out);
    }
    return trace;
  }();
  for (size_t t = 2; t < 12; ++t) {
    EXPECT_TRUE(runner.StepAll(0.5F).failures.empty());
    EXPECT_TRUE(runner.out.Slot(2) == expected[t].Slot(2));
    EXPECT_TRUE(runner.out.Slot(7) == expected[t].Slot(7));
  }
}

// numbers drawn before the exception are drawn again
TEST_P(Failures, OfAReset) {
  Started runner(MakeOptions(kEnvs, GetParam()));
  runner.StepAll(0.5F);
  const auto state = runner.State();
  const auto outcome = runner.Reset({4, 1}, kThrowingStart);
  EXPECT_EQ(FailedIds(outcome.failures), (std::vector<int32_t>{1, 4}));
  EXPECT_EQ(outcome.failures[0].message, "cannot start there");
  EXPECT_EQ(runner.State(), state);
  ExpectZeros(runner.out.Slot(1));
  EXPECT_TRUE(runner.StepAll(0.5F).failures.empty());  // its episode goes on
  EXPECT_EQ(runner.out.counts[1], 2);
}

TEST_P(Failures, OfTheFirstResetLeavesItNeeded) {
  Started runner(MakeOptions(kEnvs, GetParam()));
  Runner fresh(MakeOptions(kEnvs, GetParam()));
  fresh.Reset(fresh.all, kThrowingStart);
  ExpectUsageError(Code::kResetNeeded, "step: reset environments 0, 1",
                   [&] { fresh.StepAll(0.5F); });
}

TEST_P(Failures, OfEveryEnvironment) {
  Started runner(MakeOptions(kEnvs, GetParam()));
  const auto state = runner.State();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(FailedIds(runner.StepAll(kThrow).failures), runner.all);
  }
  EXPECT_EQ(runner.State(), state);
  EXPECT_EQ(runner.env.stats().failures, 50 * kEnvs);
  EXPECT_TRUE(runner.StepAll(0.5F).failures.empty());
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

TEST_P(Failures, OfARequestedReset) {
  Started runner(MakeOptions(kEnvs, GetParam()));
  const auto state = runner.State();
  runner.SendReset({5, 2}, kThrowingStart);
  auto failed = FailedIds(runner.Receive().failures);
  std::sort(failed.begin(), failed.end());
  EXPECT_EQ(failed, (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(runner.State(), state);
}

// a failed request belongs to Wait, whichever other call ends meanwhile
TEST_P(Failures, OfARequestIsNotReportedByAnotherCall) {
  Started runner(MakeOptions(kEnvs, GetParam()));
  for (int i = 0; i < 20; ++i) {
    runner.Send({0, 1}, {kThrow, 0.5F});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a helper runs it
    ExpectUsageError(Code::kBusy, "reset", [&] { runner.Reset({3}); });
    runner.State({3});
    const auto ready = runner.Receive();
    EXPECT_EQ(FailedIds(ready.failures), std::vector<int32_t>{0});
    EXPECT_EQ(ready.ids, std::vector<int32_t>{1});
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
