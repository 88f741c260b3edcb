// Memory runs out in the middle of a call, at every place where it can: the call fails whole, or
// the environments do one by one, and the vector environment goes on as if it had not been called.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "counting_env.h"
#include "failing_new.h"

namespace pyfastenv::testing {
namespace {

constexpr int kEnvs = 5;
constexpr int kMaxEpisodeSteps = 4;

std::vector<int32_t> Sorted(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

class Memory : public ::testing::TestWithParam<AutoresetMode> {
 protected:
  Memory() : runner(MakeOptions(kEnvs, 1, GetParam(), kMaxEpisodeSteps)) { runner.Start(); }

  Runner runner;
};

TEST_P(Memory, SendIsAllOrNothing) {
  const std::vector<float> actions(kEnvs, 0.5F);
  const ActionViews views{actions.data(), DType::kFloat32, sizeof(float)};
  const auto before = runner.State();
  // get_state refuses environments that are under way
  const int failures = WithEverMoreMemory([&] { runner.env.Send(runner.all, views); },
                                          [&] { EXPECT_EQ(runner.State(), before); });
  EXPECT_GT(failures, 2);
  EXPECT_LT(failures, 1000);
  EXPECT_EQ(runner.Receive().ids.size(), static_cast<size_t>(kEnvs));
}

TEST_P(Memory, ReceiveLosesNothing) {
  Started calm(MakeOptions(kEnvs, 1, GetParam(), kMaxEpisodeSteps));
  std::vector<float> actions(kEnvs, 0.5F);
  actions[2] = kThrow;
  calm.Send(calm.all, actions);
  const auto expected = calm.Receive();
  ASSERT_EQ(expected.failures.size(), 1U);

  runner.Send(runner.all, actions);
  // with memory for the environments' own part: this is about handing over
  runner.env.Receive({0, 0, std::nullopt}, Never);  // given back, since nobody gathers them
  VectorEnv::Received received;
  const int failures = WithEverMoreMemory(
      [&] { received = runner.env.Receive({0, 0, std::nullopt}, Never); }, [] {});
  EXPECT_GT(failures, 0);
  EXPECT_LT(failures, 1000);
  EXPECT_EQ(Sorted(received.ids), Sorted(expected.ids));  // they come as they are done
  ASSERT_EQ(received.failures.size(), 1U);
  EXPECT_EQ(received.failures[0].message, expected.failures[0].message);
  Results arrived(kEnvs);
  WithEverMoreMemory([&] { runner.env.Gather(received, arrived.Views()); }, [] {});
  EXPECT_EQ(runner.State(), calm.State());
}

TEST_P(Memory, ResultsThatAreNotGatheredWaitForTheNextReceiver) {
  runner.SendAll(0.5F);
  {
    const auto dropped = runner.env.Receive({0, 0, std::nullopt}, Never);
  }
  EXPECT_EQ(Sorted(runner.Receive().ids), runner.all);
}

TEST_P(Memory, AnEnvironmentWithoutMemoryHasNotMoved) {
  const std::vector<float> actions(kEnvs, 0.5F);
  const ActionViews views{actions.data(), DType::kFloat32, sizeof(float)};
  bool some_failed = false;
  for (int step = 0; step < 2 * kMaxEpisodeSteps; ++step) {
    for (int n = 0; n < 40; ++n) {
      if (GetParam() == AutoresetMode::kDisabled) runner.Reset(runner.Ended());
      const auto before = runner.State();
      VectorEnv::Outcome outcome;
      bool thrown = false;
      try {
        const FailingNew failing(n);
        outcome = runner.env.Step(views, runner.out.Views(), Never);
      } catch (const std::bad_alloc&) {
        thrown = true;  // no memory for the outcome: who knows what has moved
      }
      if (thrown) {
        runner.Reset(runner.all);
        continue;
      }
      const auto after = runner.State();
      const size_t bytes = runner.env.state_bytes();
      for (const auto& failure : outcome.failures) {
        some_failed = true;
        const auto begin = static_cast<ptrdiff_t>(static_cast<size_t>(failure.env_id) * bytes);
        EXPECT_TRUE(std::equal(before.begin() + begin,
                               before.begin() + begin + static_cast<ptrdiff_t>(bytes),
                               after.begin() + begin));
      }
    }
  }
  // only the last step of an episode in SAME_STEP allocates: the final observation
  EXPECT_EQ(some_failed, GetParam() == AutoresetMode::kSameStep);
}

INSTANTIATE_TEST_SUITE_P(Modes, Memory,
                         ::testing::Values(AutoresetMode::kNextStep, AutoresetMode::kSameStep,
                                           AutoresetMode::kDisabled),
                         [](const auto& info) { return ModeName(info.param); });

}  // namespace
}  // namespace pyfastenv::testing
