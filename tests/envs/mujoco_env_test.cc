// MujocoEnv and prepared steps: whatever a task does around Simulate, its results are those of
// mj_step.
#include "envs/mujoco/mujoco_env.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace pyfastenv {
namespace {

constexpr int kGroup = 4;
constexpr int kSteps = 30;

// What a task does that gymnasium's do not.
enum class Habit { kNone, kSimulatesTwice, kMovesBefore, kMovesAfter, kReadsUndeclared };

/// A HalfCheetah whose actions are angles that a servo in Control drives the joints to.
class Servo final : public MujocoEnv {
 public:
  Servo(ModelCache& models, Habit habit, SpecBuilder&& spec = {})
      : MujocoEnv(spec, Params(), models, GymVersion::kV5,
                  {.xml_file = "half_cheetah.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = 0.1,
                   .velocity_noise = Robot::Noise::kNormal,
                   .reads = {.fields = {Field::xpos}}}),
        habit_(habit) {
    SetObservation(spec, model().nq + 3);
    Prepare(InitialLayout());
    Adopt();
  }

  void Control(const Action& action, const Situation& from, mjtNum* ctrl) override {
    for (int i = 0; i < model().nu; ++i) {
      ctrl[i] = 2.0 * (action[i].value() - from.qpos[3 + i]) - 0.1 * from.qvel[3 + i];
    }
  }

  StepResult StepTask(const Action& action, InfoRow /*info*/) override {
    if (habit_ == Habit::kMovesBefore) data().qpos[0] += 1.0;
    Simulate(action);
    if (habit_ == Habit::kSimulatesTwice) Simulate(action);
    if (habit_ == Habit::kMovesAfter) data().qvel[0] += 1.0;
    const double undeclared = habit_ == Habit::kReadsUndeclared ? data().xmat[9] : 0.0;
    return {.reward = body_xpos(1)[2] + undeclared};
  }

  void Observe(double* obs) const override {
    obs = Append(obs, qpos(), model().nq);
    Append(obs, body_xpos(2), 3);
  }

 private:
  const Habit habit_;
};

/// Everything that some environments' steps give, their rows included.
std::vector<double> Trace(Servo& env, bool prepared) {
  const auto row_size = static_cast<size_t>(env.InitialLayout().size());
  std::vector<std::vector<double>> rows;
  for (uint32_t i = 0; i < kGroup; ++i) {
    const uint32_t seed[] = {i};
    Random random(seed);
    rows.push_back(env.InitialRow());
    env.Load(rows[i].data());
    env.Reset(random, {}, nullptr);
    env.Save(rows[i].data());
  }
  std::vector<double> results;
  std::vector<double> obs(static_cast<size_t>(env.spec().obs_size));
  Random random;
  for (int t = 0; t < kSteps; ++t) {
    double angles[kGroup][6];
    ComingStep steps[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      for (int k = 0; k < 6; ++k) angles[i][k] = 0.4 * std::sin(0.3 * t + i + 2 * k);
      steps[i] = {rows[static_cast<size_t>(i)].data(), Action(angles[i], DType::kFloat64, 6)};
    }
    if (prepared) env.PrepareSteps(steps);
    for (const ComingStep& step : steps) {
      env.Load(step.row);
      results.push_back(env.Step(step.action, random, nullptr).reward);
      env.Observe(obs.data());
      results.insert(results.end(), obs.begin(), obs.end());
      env.Save(const_cast<double*>(step.row));
    }
  }
  for (const auto& row : rows) results.insert(results.end(), row.begin(), row.begin() + row_size);
  return results;
}

bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

class PreparedTasks : public ::testing::Test {
 protected:
  ModelCache lanes_{std::getenv("PYFASTENV_ASSETS_DIR"), ModelParts::kPhysics, Engine::kLanes};
  ModelCache mujoco_{std::getenv("PYFASTENV_ASSETS_DIR"), ModelParts::kPhysics, Engine::kMujoco};

  /// Compares both engines; returns what lanes report.
  EngineReport Compare(Habit habit) {
    Servo ours(lanes_, habit);
    Servo theirs(mujoco_, habit);
    EXPECT_GE(ours.group_size(), 1);
    EXPECT_EQ(theirs.group_size(), 0);
    EXPECT_TRUE(SameBits(Trace(ours, ours.group_size() >= kGroup), Trace(theirs, true)));
    EXPECT_EQ(theirs.engine().lane_steps, 0);
    if (ours.group_size() < kGroup) return {"", "", -1, -1};  // one lane: nothing was prepared
    return ours.engine();
  }
};

TEST_F(PreparedTasks, AControlThatIsNotTheActionIsPrepared) {
  const EngineReport report = Compare(Habit::kNone);
  if (report.misses < 0) GTEST_SKIP() << "no groups on this processor";
  EXPECT_EQ(report.lane_steps, kGroup * kSteps);
  EXPECT_EQ(report.misses, 0);
}

TEST_F(PreparedTasks, ASecondSimulateIsAMiss) {
  const EngineReport report = Compare(Habit::kSimulatesTwice);
  if (report.misses < 0) GTEST_SKIP() << "no groups on this processor";
  EXPECT_EQ(report.lane_steps, kGroup * kSteps);
  EXPECT_EQ(report.misses, kGroup * kSteps);
}

TEST_F(PreparedTasks, WhoMovesBeforeSimulateMissesWhatWasPrepared) {
  const EngineReport report = Compare(Habit::kMovesBefore);
  if (report.misses < 0) GTEST_SKIP() << "no groups on this processor";
  EXPECT_EQ(report.lane_steps, 0);
  EXPECT_EQ(report.misses, kGroup * kSteps);
}

TEST_F(PreparedTasks, WhoMovesAfterSimulateIsSaved) {
  const EngineReport report = Compare(Habit::kMovesAfter);
  if (report.misses < 0) GTEST_SKIP() << "no groups on this processor";
  EXPECT_EQ(report.lane_steps, kGroup * kSteps);
}

TEST_F(PreparedTasks, StepsThatNobodyAnnouncedAreMjSteps) {
  Servo ours(lanes_, Habit::kNone);
  Servo theirs(mujoco_, Habit::kNone);
  EXPECT_TRUE(SameBits(Trace(ours, false), Trace(theirs, false)));
  EXPECT_EQ(ours.engine().lane_steps, 0);
  EXPECT_EQ(ours.engine().misses, kGroup * kSteps);
}

TEST_F(PreparedTasks, WhatIsReadUndeclaredIsFoundOut) {
  ASSERT_EQ(setenv("PYFASTENV_POISON", "1", 1), 0);
  Servo honest(lanes_, Habit::kNone);
  Servo sloppy(lanes_, Habit::kReadsUndeclared);
  ASSERT_EQ(unsetenv("PYFASTENV_POISON"), 0);
  if (honest.group_size() < kGroup) GTEST_SKIP() << "no groups on this processor";
  const auto has_nan = [](const std::vector<double>& values) {
    return std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
  };
  EXPECT_FALSE(has_nan(Trace(honest, true)));
  EXPECT_TRUE(has_nan(Trace(sloppy, true)));
}

}  // namespace
}  // namespace pyfastenv
