// What the self-check finds: a difference wherever it shows, named to the bit; how long it takes.
#include "lanes/self_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lanes/difference.h"
#include "lanes/start_states.h"
#include "support.h"

namespace pyfastenv::lanes {
namespace {

TEST(Difference, NamesEveryNumberThatAStepChanges) {
  const ModelPtr m = LoadXml(
      "<mujoco><worldbody><body name='b'><freejoint name='root'/><geom size='.1'/>"
      "<body><joint/><geom size='.1'/></body></body></worldbody>"
      "<actuator><intvelocity name='servo' joint='root' kp='1' actrange='-1 1'/></actuator>"
      "</mujoco>");
  EXPECT_EQ(NameOfNumber(*m, 0), "time");
  EXPECT_EQ(NameOfNumber(*m, 1), "qpos[0] of joint 'root'");
  EXPECT_EQ(NameOfNumber(*m, 7), "qpos[6] of joint 'root'");
  EXPECT_EQ(NameOfNumber(*m, 8), "qpos[7] of joint 1");
  EXPECT_EQ(NameOfNumber(*m, 8 + 6), "qvel[5] of joint 'root'");
  EXPECT_EQ(NameOfNumber(*m, 8 + 7), "qvel[6] of joint 1");
  EXPECT_EQ(NameOfNumber(*m, 8 + 8), "act[0] of actuator 'servo'");
  EXPECT_EQ(NameOfNumber(*m, 8 + 9), "qacc_warmstart[0] of joint 'root'");
}

TEST(Difference, SeesBitsAndNotValues) {
  const double ours[] = {1, 0.0, 3}, theirs[] = {1, -0.0, 4};
  const auto found = FindDifference(ours, theirs, 3);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->index, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(FindDifference(&nan, &nan, 1).has_value());
}

TEST(Difference, IsSaidWithBothValuesToTheBit) {
  const ModelPtr m = LoadXml(
      "<mujoco model='pendulum'><option integrator='RK4'/><worldbody><body><joint name='hip'/>"
      "<geom size='.1'/></body></worldbody></mujoco>");
  const std::string said = Describe(*m, 8, "step 3", {2, 1.5, std::nextafter(1.5, 2)});
  EXPECT_EQ(
      said.rfind("lanes and mj_step differ on this machine, at step 3 in qvel[0] of joint "
                 "'hip': 0x1.8p+0 (1.5) in lanes, 0x1.8000000000001p+0 "
                 "(1.5000000000000002) by mj_step (model 'pendulum', RK4, 8 lanes, pyfastenv ",
                 0),
      0u)
      << said;
  EXPECT_NE(said.find("MuJoCo " + std::string(mj_versionString())), std::string::npos);
  EXPECT_NE(said.find("please report it"), std::string::npos);
}

// ---- faults that show in some states only
// --------------------------------------------------------

bool (*fault_shows)(const Tables& t, const double* row) = nullptr;

void StoreWrongly(const Tables& t, const void* scratch, int lane, double* row) {
  const bool shows = fault_shows(t, row);
  KernelsOfWidth(1)->store(t, scratch, lane, row);
  if (shows) row[t.row.qvel] = std::nextafter(row[t.row.qvel], 1e9);
}

std::string RefusalWith(const mjModel& m, bool (*shows)(const Tables& t, const double* row)) {
  Kernels wrong = *KernelsOfWidth(1);
  wrong.store = StoreWrongly;
  fault_shows = shows;
  return Plan::Make(m, wrong).refusal;
}

constexpr char kRobot[] =
    "<mujoco><worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 2' euler='20 30 "
    "0'><freejoint/>"
    "<geom type='capsule' size='.1 .3'/><body pos='0 0 -.4'><joint name='knee' axis='0 1 0' "
    "range='-90 0' limited='true'/><geom type='capsule' size='.08 .2'/></body></body></worldbody>"
    "<actuator><motor joint='knee' ctrlrange='-1 1'/></actuator>"
    "<keyframe><key qpos='0 0 77 .9 .2 .1 0 0'/></keyframe></mujoco>";

TEST(SelfCheck, FindsNothingWhereNothingIsWrong) {
  const ModelPtr m = LoadXml(kRobot);
  EXPECT_EQ(RefusalWith(*m, [](const Tables&, const double*) { return false; }), "");
}

TEST(SelfCheck, MeetsHighSpeeds) {
  const ModelPtr m = LoadXml(kRobot);
  const auto fast = [](const Tables& t, const double* row) { return row[t.row.qvel + 3] > 15; };
  EXPECT_NE(RefusalWith(*m, fast).find("at high speed"), std::string::npos);
}

TEST(SelfCheck, MeetsKeyframes) {
  const ModelPtr m = LoadXml(kRobot);
  const auto up = [](const Tables& t, const double* row) { return row[t.row.qpos + 2] > 50; };
  EXPECT_NE(RefusalWith(*m, up).find("from a keyframe"), std::string::npos);
}

TEST(SelfCheck, MeetsSaturatedControls) {
  const ModelPtr m = LoadXml(kRobot);
  const auto saturated = [](const Tables& t, const double* row) { return row[t.row.ctrl] < -1.4; };
  EXPECT_NE(RefusalWith(*m, saturated).find("under saturated controls"), std::string::npos);
}

TEST(SelfCheck, MeetsTheGround) {
  const ModelPtr m = LoadXml(kRobot);
  const auto low = [](const Tables& t, const double* row) { return row[t.row.qpos + 2] < 0.6; };
  EXPECT_NE(RefusalWith(*m, low).find("in contact"), std::string::npos);
}

TEST(SelfCheck, MeetsNegativeZerosAndDenormals) {
  const ModelPtr m = LoadXml(kRobot);
  const auto zero = [](const Tables& t, const double* row) {
    return row[t.row.qvel + 1] == 0 && std::signbit(row[t.row.qvel + 1]);
  };
  EXPECT_NE(RefusalWith(*m, zero).find("from rest"), std::string::npos);
  const auto denormal = [](const Tables& t, const double* row) {
    return std::fpclassify(row[t.row.qvel + 2]) == FP_SUBNORMAL;
  };
  EXPECT_NE(RefusalWith(*m, denormal).find("from rest"), std::string::npos);
}

// Of the robots' starts in contact most are, and what has settled stays on the ground.
TEST(StartStates, TouchTheGround) {
  for (const Robot& robot : Robots()) {
    const ModelPtr m = LoadRobot(robot);
    const DataPtr d = MakeData(*m);
    LaneStepper lanes(MakePlan(*m, Widths().front()));
    StartStates starts(*m, *d, lanes);
    int drawn[2] = {}, touching[2] = {};
    std::vector<double> row(static_cast<size_t>(lanes.plan().tables().row.size));
    for (int i = 0; i < 70; ++i) {
      const StartStates::Kind kind = StartStates::KindOf(i);
      if (kind != StartStates::Kind::kTouching && kind != StartStates::Kind::kSettled) continue;
      const int which = kind == StartStates::Kind::kSettled ? 1 : 0;
      starts.Draw(i, row.data());
      mj_setState(m.get(), d.get(), row.data(), mjSTATE_INTEGRATION);
      mj_forward(m.get(), d.get());
      ++drawn[which];
      touching[which] += d->ncon > 0 ? 1 : 0;
    }
    const std::string name = robot.name;
    const bool walks = name == "Hopper" || name == "HalfCheetah" || name == "Walker2d" ||
                       name == "Ant" || name == "Humanoid" || name == "HumanoidStandup";
    if (!walks) continue;
    EXPECT_GE(10 * touching[0], 7 * drawn[0]) << name;
    EXPECT_GE(2 * touching[1], drawn[1]) << name;
  }
}

}  // namespace
}  // namespace pyfastenv::lanes
