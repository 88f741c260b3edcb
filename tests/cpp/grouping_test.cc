// Groups of environments whose steps are prepared together: who is in them, and that they change
// nothing. The rest of the suite runs with groups too (PYFASTENV_TEST_GROUP).
#include "core/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "counting_env.h"

namespace pyfastenv {
namespace {

using namespace pyfastenv::testing;  // NOLINT

// ---- Grouping ----

std::vector<int> Sizes(const Grouping& grouping) {
  std::vector<int> sizes;
  for (int i = 0; i < grouping.num_groups(); ++i) {
    const auto [begin, end] = grouping.Positions(i);
    sizes.push_back(end - begin);
  }
  return sizes;
}

TEST(Grouping, FewAreSharedByAllWorkers) {
  EXPECT_EQ(Sizes(Grouping(8, 2, 8)), (std::vector<int>{4, 4}));
  EXPECT_EQ(Sizes(Grouping(5, 4, 8)), (std::vector<int>{1, 1, 1, 2}));
}

TEST(Grouping, ManyMakeWholeGroupsAndOneRestForEachWorker) {
  EXPECT_EQ(Sizes(Grouping(40, 2, 8)), (std::vector<int>{8, 8, 4, 8, 8, 4}));
  EXPECT_EQ(Sizes(Grouping(64, 2, 8)), std::vector<int>(8, 8));
  // the first worker has one environment less, and no rest
  EXPECT_EQ(Sizes(Grouping(17, 2, 4)), (std::vector<int>{4, 4, 0, 4, 4, 1}));
}

TEST(Grouping, OfOneIsEveryPositionByItself) {
  EXPECT_EQ(Sizes(Grouping(6, 3, 1)), std::vector<int>(6, 1));
}

// ---- who is prepared ----

struct Case {
  int num_envs, num_threads, group_size;
};

class Groups : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Groups,
                         ::testing::Values(Case{1, 1, 8}, Case{3, 1, 4}, Case{5, 2, 1},
                                           Case{8, 2, 8}, Case{9, 3, 4}, Case{50, 1, 8},
                                           Case{200, 7, 8}),
                         [](const auto& info) {
                           return std::to_string(info.param.num_envs) + "EnvsOn" +
                                  std::to_string(info.param.num_threads) + "By" +
                                  std::to_string(info.param.group_size);
                         });

VectorEnvOptions OptionsOf(const Case& c, AutoresetMode mode) {
  return MakeOptions(c.num_envs, c.num_threads, mode, kTraceMaxEpisodeSteps);
}

// ordinary ones, so that all are prepared
std::vector<float> OrdinaryActions(int t, const std::vector<int32_t>& ids) {
  std::vector<float> actions;
  for (const int32_t id : ids) actions.push_back(0.25F * static_cast<float>((3 * t + id) % 13 - 6));
  return actions;
}

TEST_P(Groups, EveryStepIsPreparedAndNoReset) {
  for (const auto mode : {AutoresetMode::kNextStep, AutoresetMode::kSameStep}) {
    Runner grouped(OptionsOf(GetParam(), mode), GetParam().group_size);
    Runner single(OptionsOf(GetParam(), mode), 0);
    grouped.Start();
    single.Start();
    for (int t = 0; t < kTraceSteps; ++t) {
      grouped.Step(OrdinaryActions(t, grouped.all));
      single.Step(OrdinaryActions(t, single.all));
      ASSERT_TRUE(grouped.out == single.out) << ModeName(mode) << ", step " << t;
    }
    EXPECT_EQ(grouped.State(), single.State());
    const EngineReport report = grouped.env.engine();
    EXPECT_EQ(report.lane_steps, grouped.env.stats().steps);
    EXPECT_EQ(report.misses, 0);
    EXPECT_EQ(single.env.engine().lane_steps, 0);
  }
}

TEST_P(Groups, EverySentStepIsPrepared) {
  Runner grouped(OptionsOf(GetParam(), AutoresetMode::kNextStep), GetParam().group_size);
  Runner single(OptionsOf(GetParam(), AutoresetMode::kNextStep), 0);
  grouped.Start();
  single.Start();
  for (int t = 0; t < kTraceSteps; ++t) {
    const auto actions = OrdinaryActions(t, grouped.all);
    grouped.Send(grouped.all, actions);
    for (size_t left = grouped.all.size(); left > 0;) left -= grouped.Receive(1).ids.size();
    single.Step(actions);
    ASSERT_TRUE(SameBits(grouped.out.obs, single.out.obs)) << "step " << t;
  }
  EXPECT_EQ(grouped.State(), single.State());
  EXPECT_EQ(grouped.env.engine().misses, 0);
  EXPECT_EQ(grouped.env.engine().lane_steps, grouped.env.stats().steps);
}

TEST(GroupsOfFew, AreAsLargeAsAWorkersShare) {
  std::mutex mutex;
  std::vector<CountingEnv*> made;
  const auto make = [&] {
    auto env = std::make_unique<CountingEnv>(8);
    const std::lock_guard lock(mutex);
    made.push_back(env.get());
    return env;
  };
  constexpr int kEnvs = 8;
  VectorEnv env(make, MakeOptions(kEnvs, 2));
  Results out(kEnvs);
  const std::vector<int32_t> ids = {0, 1, 2, 3, 4, 5, 6, 7};
  const double options[] = {0.0};
  env.Seed(std::vector<std::vector<uint32_t>>(kEnvs, {1}));
  env.Reset(ids, {}, options, out.Views(), Never);
  const auto step = [&](float action) {
    const std::vector<float> actions(kEnvs, action);
    env.Step({actions.data(), DType::kFloat32, sizeof(float)}, out.Views(), Never);
  };
  step(Nap(1));  // so much that the next one is shared
  for (CountingEnv* worker : made) worker->TakeLargestGroup();
  step(0.5F);
  int largest = 0;
  for (CountingEnv* worker : made) largest = std::max(largest, worker->TakeLargestGroup());
  EXPECT_EQ(largest, kEnvs / 2);
}

// ---- what goes wrong ----

TEST_P(Groups, OneThatRaisesLeavesTheOthers) {
  Runner grouped(OptionsOf(GetParam(), AutoresetMode::kNextStep), GetParam().group_size);
  Runner single(OptionsOf(GetParam(), AutoresetMode::kNextStep), 0);
  grouped.Start();
  single.Start();
  for (int t = 0; t < kTraceSteps; ++t) {
    auto actions = OrdinaryActions(t, grouped.all);
    actions[static_cast<size_t>(t) % actions.size()] = t % 2 == 0 ? kThrow : kThrowOther;
    actions[static_cast<size_t>(t + 1) % actions.size()] = kDiverge;
    const auto failures = grouped.Step(actions).failures;
    EXPECT_EQ(FailedIds(failures), FailedIds(single.Step(actions).failures));
    ASSERT_TRUE(grouped.out == single.out) << "step " << t;
  }
  EXPECT_EQ(grouped.State(), single.State());
  EXPECT_GT(grouped.env.engine().misses, 0);
}

TEST_P(Groups, EndWhenAFieldIsAdded) {
  Runner grouped(OptionsOf(GetParam(), AutoresetMode::kSameStep), GetParam().group_size);
  Runner single(OptionsOf(GetParam(), AutoresetMode::kSameStep), 0);
  for (Runner* runner : {&grouped, &single}) {
    runner->Start();
    runner->Step(OrdinaryActions(0, runner->all));
  }
  const int64_t prepared = grouped.env.engine().lane_steps;
  EXPECT_GT(prepared, 0);
  for (Runner* runner : {&grouped, &single}) {
    const RowField field = runner->env.AddField("gain");
    std::vector<double> gains;
    for (size_t i = 0; i < 2 * runner->all.size(); ++i) {
      gains.push_back(0.1 * static_cast<double>(i));
    }
    runner->env.SetField(field, runner->all, gains.data());
    for (int t = 1; t < kTraceSteps; ++t) runner->Step(OrdinaryActions(t, runner->all));
  }
  EXPECT_TRUE(grouped.out == single.out);
  EXPECT_EQ(grouped.State(), single.State());
  EXPECT_EQ(grouped.env.engine().lane_steps, prepared);
}

}  // namespace
}  // namespace pyfastenv
