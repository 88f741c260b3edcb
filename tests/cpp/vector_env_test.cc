// VectorEnv's barrier calls on several threads, interrupted and closed. What they return is held
// against gymnasium in Python: autoreset, seeds, snapshots, tasks and fields; so are refusals,
// calls after Close and forks (test_errors.py, test_failures.py).
#include "core/vector_env.h"

#include <gtest/gtest.h>

#include "counting_env.h"

namespace pyfastenv {
namespace {

using namespace pyfastenv::testing;  // NOLINT

// ---- parallel equals serial ----

// bit for bit, over both kinds of episode ends
TEST_P(ModesAndThreads, StepEqualsSerial) {
  const auto [mode, num_threads] = GetParam();
  const std::vector<Results> serial = RunSteps(mode, 1);
  const auto ended = [&](auto flags) {
    return std::any_of(serial.begin(), serial.end(), [&](const Results& results) {
      return std::any_of((results.*flags).begin(), (results.*flags).end(),
                         [](uint8_t flag) { return flag != 0; });
    });
  };
  ASSERT_TRUE(ended(&Results::terminations) && ended(&Results::truncations));
  EXPECT_TRUE(RunSteps(mode, num_threads) == serial);
}

INSTANTIATE_TEST_SUITE_P(All, ModesAndThreads, kModesAndThreads, NameOf);

constexpr float kPush = 0.5F;

// ---- what is decided after a step: its numbers are held by test_own_tasks_batch.py ----

TEST(Amend, EndsAnEpisodeOnce) {
  Started runner(MakeOptions(1, 1, AutoresetMode::kNextStep, 1));
  runner.StepAll(kPush);
  const uint8_t ended[] = {1};
  const double rewards[] = {0.0};
  runner.env.Amend(runner.all, rewards, ended);
  EXPECT_EQ(runner.env.stats().episodes, 1);
}

TEST(Amend, NotWhileUnderWay) {
  Started runner(MakeOptions(2, 1));
  runner.Send({1}, {kPush});
  const double rewards[] = {0.0};
  const uint8_t ended[] = {0};
  const int32_t busy[] = {1};
  const int32_t idle[] = {0};
  ExpectUsageError(Code::kBusy, "amend", [&] { runner.env.Amend(busy, rewards, ended); });
  runner.env.Amend(idle, rewards, ended);
}

TEST(Episodes, StepBeforeTheFirstReset) {
  Runner runner(MakeOptions(12, 3));
  runner.Reset({1});
  ExpectUsageError(Code::kResetNeeded, "0, 2, 3, 4, 5, 6, 7, 8 and 3 more",
                   [&] { runner.StepAll(kPush); });
}

TEST(Episodes, StatsCountStepsAndNotResets) {
  Started runner(MakeOptions(4, 3, AutoresetMode::kNextStep, 2));
  for (int t = 0; t < 9; ++t) runner.StepAll(kPush);  // step, step, reset
  const Stats stats = runner.env.stats();
  EXPECT_EQ(stats.steps, 4 * 6);
  EXPECT_EQ(stats.episodes, 4 * 3);
  EXPECT_EQ(stats.diverged, 0);
  EXPECT_EQ(stats.failures, 0);
}

// ---- model fields ----

TEST(Fields, AreAddedOnce) {
  Runner runner(MakeOptions(3, 3));
  const RowField slot = runner.env.AddField("gain");
  const size_t bytes = runner.env.state_bytes();
  EXPECT_EQ(runner.env.AddField("gain").offset, slot.offset);
  EXPECT_EQ(runner.env.state_bytes(), bytes);
}

// ---- interruption ----

class Threads : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, Threads, ::testing::Values(1, 3));

// a caller that the machine holds up finds everything done, and asks nobody: not every time
constexpr int kRounds = 50;

TEST_P(Threads, ACallbackThatSaysNoChangesNothing) {
  int polls = 0;
  for (int round = 0; polls == 0 && round < kRounds; ++round) {
    Started runner(MakeOptions(8, GetParam()));
    const auto outcome = runner.Step(std::vector<float>(8, Nap(50)), [&] { return ++polls < 0; });
    EXPECT_FALSE(outcome.interrupted);
    EXPECT_EQ(runner.env.stats().steps, 8);
  }
  EXPECT_GT(polls, 0);
}

// ---- several threads ----

// batches of all sizes, one after another: late helpers never touch a finished batch
TEST_P(Threads, StressBatches) {
  Started runner(MakeOptions(16, GetParam()));
  Started serial(MakeOptions(16, 1));
  std::vector<int32_t> some;
  for (int t = 0; t < 400; ++t) {
    some.assign(runner.all.begin(), runner.all.begin() + t % 17);
    runner.Reset(some);
    serial.Reset(some);
    runner.Step(ActionsOf(t, runner.all));
    serial.Step(ActionsOf(t, serial.all));
    ASSERT_TRUE(runner.out == serial.out);
  }
}

// ---- Close ----

// Close waits for another thread's step to end
TEST_P(Threads, CloseWaitsForAStep) {
  Started runner(MakeOptions(6, GetParam()));
  std::atomic<bool> begun{false};
  std::thread stepper([&] {
    begun.store(true);
    RefusalOf({Code::kClosed}, [&] {  // Close came first
      runner.StepAll(Nap(20));
      EXPECT_EQ(runner.env.stats().steps, 6);
    });
  });
  while (!begun.load()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  runner.env.Close();
  stepper.join();
}

TEST_P(Threads, ComesAndGoes) {
  for (int i = 0; i < 100; ++i) {
    Runner runner(MakeOptions(4, GetParam()));
    if (i % 3 > 0) runner.Start();
    if (i % 3 > 1) runner.SendAll(kPush);
  }
}

}  // namespace
}  // namespace pyfastenv
