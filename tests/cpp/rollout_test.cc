// Rollouts: trajectories are those of steps fed the recorded actions, whatever runs them and
// however they are cut; what fails is a single environment.
#include "core/rollout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "counting_env.h"

namespace pyfastenv {
namespace {

using namespace pyfastenv::testing;  // NOLINT

constexpr int kEnvs = 35;  // in groups of four: blocks of several
constexpr int kSteps = 60;
constexpr int kMaxEpisodeSteps = 9;  // so that episodes end in both ways

enum PolicyId { kOrdinary, kTrigger };

/// Two policies side by side. kOrdinary: Gaussian about small numbers that follow the observation.
/// kTrigger: the command `limit`, where an episode's count has reached `count`, else 0.
Policy MakePolicy(float limit, int count) {
  constexpr int kHidden = 2;
  Mlp mlp(2, {CountingEnv::kObsSize, kHidden, 1}, Activation::kRelu);
  const float first[] = {0.05F, -0.05F, 0.1F, 0.0F, 0.3F, -0.4F,  // kOrdinary: (3, 2)
                         0.0F,  0.0F,   1.0F, 0.0F, 0.0F, 0.0F};
  const float first_biases[] = {0.2F, 0.3F, 0.5F - static_cast<float>(count), 0.0F};
  const float last[] = {0.7F, -0.9F, 1e6F, 0.0F};
  const float last_biases[] = {-0.25F, 0.0F};
  mlp.SetLayer(0, first, first_biases);
  mlp.SetLayer(1, last, last_biases);
  PolicyOptions options;
  options.distribution = Distribution::kGaussian;
  options.action_low = {-1.5F};
  options.action_high = {limit};
  options.log_std = {0.0F, -20.0F};
  return {std::move(mlp), options};
}

Policy Ordinary() { return MakePolicy(1.5F, 0); }

/// A policy for each environment.
std::vector<int32_t> MixedPolicies() {
  std::vector<int32_t> ids(kEnvs);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i % 9 == 2 || i % 9 == 4 || i % 9 == 5 ? 1 : 0;
  return ids;
}

struct Arrays : RolloutArrays {
  using RolloutArrays::RolloutArrays;

  std::vector<double> ObsAt(int t, int32_t id) const {
    const double* from = &obs[Slot(t, id) * CountingEnv::kObsSize];
    return {from, from + CountingEnv::kObsSize};
  }

  /// Everything of one environment, steps begin … end - 1.
  std::vector<double> Row(int32_t id, int begin, int end) const {
    std::vector<double> row;
    for (int t = begin; t < end; ++t) {
      const size_t slot = Slot(t, id);
      const auto observation = ObsAt(t, id);
      row.insert(row.end(), observation.begin(), observation.end());
      row.insert(row.end(),
                 {rewards[slot], actions[slot], log_probs[slot], 1.0 * terminations[slot],
                  1.0 * truncations[slot], 1.0 * autoresets[slot]});
    }
    return row;
  }
  std::vector<double> Row(int32_t id) const { return Row(id, 0, num_steps); }
};

struct Result {
  Arrays arrays;
  VectorEnv::RolloutOutcome outcome;
};

Result Roll(Runner& runner, const Policy& policy, int num_steps,
            const std::vector<int32_t>& policy_ids = {}, const Interrupted& interrupted = Never) {
  Result result{Arrays(num_steps, runner.env.num_envs()), {}};
  result.outcome =
      runner.env.RunRollout({&policy, policy_ids, num_steps, result.arrays.Views()}, interrupted);
  return result;
}

bool SameEpisodes(const std::vector<EpisodeEnd>& a, const std::vector<EpisodeEnd>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const EpisodeEnd& x, const EpisodeEnd& y) {
        return x.step == y.step && x.env_id == y.env_id && x.episode_return == y.episode_return &&
               x.length == y.length && x.terminated == y.terminated && x.final_obs == y.final_obs;
      });
}

std::vector<EpisodeEnd> EpisodesOf(const std::vector<EpisodeEnd>& episodes, int32_t id) {
  std::vector<EpisodeEnd> own;
  std::copy_if(episodes.begin(), episodes.end(), std::back_inserter(own),
               [id](const EpisodeEnd& episode) { return episode.env_id == id; });
  return own;
}

bool SameResults(const Result& a, const Result& b) {
  for (int32_t id = 0; id < a.arrays.num_envs; ++id) {
    if (a.arrays.Row(id) != b.arrays.Row(id)) return false;
  }
  return SameBits(a.arrays.last_obs, b.arrays.last_obs) &&
         SameEpisodes(a.outcome.episodes, b.outcome.episodes);
}

VectorEnvOptions RolloutOptions(int num_threads, AutoresetMode mode = AutoresetMode::kSameStep) {
  return MakeOptions(kEnvs, num_threads, mode, kMaxEpisodeSteps);
}

class Rollouts : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Rollouts, ::testing::Values(1, 3, 7));

// ---- the same as steps ----

class RolloutsIn : public ::testing::TestWithParam<AutoresetMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, RolloutsIn,
                         ::testing::Values(AutoresetMode::kSameStep, AutoresetMode::kNextStep),
                         [](const auto& info) { return ModeName(info.param); });

TEST_P(RolloutsIn, ThreadsDoNotMatter) {
  const Policy policy = MakePolicy(kBusyWork, 4);
  const std::vector<int32_t> policy_ids = MixedPolicies();
  Started serial(RolloutOptions(1, GetParam()));
  const auto expected = Roll(serial, policy, 5 * kSteps, policy_ids);
  for (const int num_threads : {3, 7}) {
    Started runner(RolloutOptions(num_threads, GetParam()));
    EXPECT_TRUE(SameResults(Roll(runner, policy, 5 * kSteps, policy_ids), expected));
    EXPECT_EQ(runner.State(), serial.State());
  }
}

TEST(RolloutArrays, ObservationsAreRoundedWhereTheEnvironmentsAre) {
  VectorEnvOptions options = RolloutOptions(2);
  options.obs_dtype = DType::kFloat32;
  Started runner(options);
  const auto result = Roll(runner, Ordinary(), kSteps);
  const auto rounded = [](double x) { return x == static_cast<double>(static_cast<float>(x)); };
  EXPECT_TRUE(std::all_of(result.arrays.obs.begin(), result.arrays.obs.end(), rounded));
  ASSERT_FALSE(result.outcome.episodes.empty());
  for (const auto& episode : result.outcome.episodes) {
    EXPECT_TRUE(std::all_of(episode.final_obs.begin(), episode.final_obs.end(), rounded));
  }
}

// more environments than one thread takes at a time
TEST_P(Rollouts, OfManyEnvironmentsAndFewSteps) {
  constexpr int kMany = 1000;
  const auto options = [](int num_threads) {
    return MakeOptions(kMany, num_threads, AutoresetMode::kSameStep, kMaxEpisodeSteps);
  };
  Started runner(options(GetParam()));
  Started twin(options(1));
  const Policy policy = Ordinary();
  for (const int num_steps : {1, 2, 1, 30}) {
    EXPECT_TRUE(SameResults(Roll(runner, policy, num_steps), Roll(twin, policy, num_steps)));
  }
  EXPECT_EQ(runner.State(), twin.State());
}

// ---- failures ----

void ExpectZerosFrom(const Arrays& arrays, int32_t id, int begin) {
  const auto row = arrays.Row(id, begin, arrays.num_steps);
  EXPECT_EQ(row, std::vector<double>(row.size()));
}

struct Command {
  float action;
  const char* message;
};

// Environments 2 and 7 raise in the sixth step of their first episode that is long enough: what is
// before that stands, they are in the state before it, and the others notice nothing.
TEST_P(Rollouts, AFailingEnvironmentStopsBeforeTheStep) {
  const std::vector<int32_t> failing = {2, 7};
  std::vector<int32_t> policy_ids(kEnvs, kOrdinary);
  for (const int32_t id : failing) policy_ids[static_cast<size_t>(id)] = kTrigger;
  for (const Command command :
       {Command{kThrow, "told to throw at count 6"}, Command{kThrowOther, "unknown exception"}}) {
    const Policy policy = MakePolicy(command.action, 5);
    const auto options = MakeOptions(kEnvs, GetParam(), AutoresetMode::kSameStep);
    Started runner(options, 12);
    const auto start = runner.State();
    const auto result = Roll(runner, policy, 10 * kSteps, policy_ids);
    ASSERT_EQ(FailedIds(result.outcome.failures), failing);
    EXPECT_FALSE(result.outcome.interrupted);
    EXPECT_EQ(runner.env.stats().failures, 2);

    int64_t steps = int64_t{kEnvs - 2} * 10 * kSteps;
    for (size_t i = 0; i < failing.size(); ++i) {
      const int32_t id = failing[i];
      const std::string& text = result.outcome.failures[i].message;
      ASSERT_EQ(text.substr(0, 5), "step ");
      const int failed = std::stoi(text.substr(5));
      EXPECT_EQ(text, "step " + std::to_string(failed) + ": " + command.message);
      EXPECT_GE(failed, 5);
      ExpectZerosFrom(result.arrays, id, failed);
      steps += failed;

      // a rollout that ends just there
      Runner twin(MakeOptions(kEnvs, 1, AutoresetMode::kSameStep));
      twin.env.SetState(twin.all, start);
      const auto shorter = Roll(twin, policy, failed, policy_ids);
      EXPECT_EQ(result.arrays.Row(id, 0, failed), shorter.arrays.Row(id));
      EXPECT_TRUE(SameEpisodes(EpisodesOf(result.outcome.episodes, id),
                               EpisodesOf(shorter.outcome.episodes, id)));
      EXPECT_EQ(runner.State({id}), twin.State({id}));
      for (size_t k = 0; k < CountingEnv::kObsSize; ++k) {
        const size_t slot = static_cast<size_t>(id) * CountingEnv::kObsSize + k;
        EXPECT_EQ(result.arrays.last_obs[slot], shorter.arrays.last_obs[slot]);
      }
    }
    EXPECT_EQ(runner.env.stats().steps, steps);

    Started twin(MakeOptions(kEnvs, 1, AutoresetMode::kSameStep), 12);
    const auto ordinary = Roll(twin, policy, 10 * kSteps);
    for (const int32_t id : runner.all) {
      if (policy_ids[static_cast<size_t>(id)] == kTrigger) continue;
      EXPECT_EQ(result.arrays.Row(id), ordinary.arrays.Row(id));
      EXPECT_EQ(runner.State({id}), twin.State({id}));
    }

    // nobody is lost
    EXPECT_TRUE(Roll(runner, policy, kSteps).outcome.failures.empty());
  }
}

TEST_P(Rollouts, DivergenceEndsTheEpisode) {
  Started runner(MakeOptions(kEnvs, GetParam(), AutoresetMode::kNextStep));
  const auto result = Roll(runner, MakePolicy(kDiverge, 1), kSteps, std::vector<int32_t>(kEnvs, 1));
  EXPECT_TRUE(result.outcome.failures.empty());
  // an ordinary step, the one that diverges, the reset
  EXPECT_EQ(runner.env.stats().diverged, kEnvs * kSteps / 3);
  for (const auto& episode : result.outcome.episodes) {
    EXPECT_EQ(episode.step % 3, 1);
    EXPECT_EQ(episode.length, 2);
    EXPECT_TRUE(episode.terminated);
  }
}

// ---- refusals, interruption, several callers ----

TEST_P(Rollouts, AnInterruptedOneLeavesEverythingToBeReset) {
  Started runner(RolloutOptions(GetParam()));
  constexpr int kLong = 2000;  // seconds of naps
  const Policy policy = MakePolicy(Nap(2), 0);
  const auto outcome =
      Roll(runner, policy, kLong, std::vector<int32_t>(kEnvs, kTrigger), GiveUpAfter(0.03)).outcome;
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_LT(runner.env.stats().steps, kEnvs * kLong);
  ExpectUsageError(Code::kResetNeeded, "rollout: reset environments 0, 1",
                   [&] { Roll(runner, Ordinary(), kSteps); });
  ExpectUsageError(Code::kResetNeeded, "interrupted", [&] { runner.StepAll(0.5F); });
  runner.Start();
  Started twin(RolloutOptions(1));
  EXPECT_TRUE(SameResults(Roll(runner, Ordinary(), kSteps), Roll(twin, Ordinary(), kSteps)));
}

}  // namespace
}  // namespace pyfastenv
