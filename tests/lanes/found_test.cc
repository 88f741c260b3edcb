// Small models in which lanes once had other physics than mj_step without a word, in closed loops
// against it; and numbers that lanes must leave to it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "closed_loop.h"

namespace pyfastenv::lanes {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Case {
  const char* name;
  const char* xml;  // what stands in <mujoco>
  void (*edit)(mjModel&) = [](mjModel&) {};
  double left_to_mujoco = 0.2;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kSwinging[] =
    "<option timestep='.005' integrator='implicitfast'/><worldbody>"
    "<geom type='plane' size='5 5 1'/>"
    "<body pos='0 0 1'><joint name='a' axis='0 1 0' actuatorfrcrange='-4.6 4.6'/>"
    "<geom type='capsule' fromto='0 0 0 .4 0 0' size='.05'/>"
    "<body pos='.4 0 0'><joint name='b' axis='0 1 0'/>"
    "<geom type='capsule' fromto='0 0 0 .4 0 0' size='.05'/></body></body></worldbody>"
    "<actuator><velocity joint='a' kv='2' ctrlrange='-.5 .5'/>"
    "<position joint='b' kp='30' kv='3' ctrlrange='-1 1'/></actuator>";

// Two bodies of two geoms over a floor, of which one is a box.
constexpr char kTwoBodies[] =
    "<option timestep='.004'/><worldbody><geom type='plane' size='5 5 1' pos='0 0 -.1751'/>"
    "<geom type='box' size='.3 .3 .05' pos='.5 0 -.1'/>"
    "<body pos='0 0 .1'><freejoint/><geom type='box' size='.1 .1 .05'/>"
    "<geom type='sphere' size='.06' pos='.1 0 .05'/></body>"
    "<body pos='.1 .05 .4'><freejoint/><geom type='capsule' size='.05 .1'/>"
    "<geom type='sphere' size='.08' pos='0 .1 0'/></body></worldbody>";

const Case kCases[] = {
    {"UprightCapsule",
     "<worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 .6'><freejoint/>"
     "<geom type='capsule' size='.05 .2'/></body></worldbody>"},
    {"UprightCapsuleOnASlide",
     "<worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 .4'>"
     "<joint name='j' type='slide' axis='0 0 1'/><joint type='slide' axis='1 0 0'/>"
     "<geom type='capsule' size='.05 .2'/></body></worldbody>"
     "<actuator><motor joint='j'/></actuator>"},
    {"NearlyUprightCapsule",
     "<worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 .1' quat='1 0 -1 0'>"
     "<joint type='hinge'/><geom type='capsule' size='.1' fromto='0 0 0 .1 0 0'/></body>"
     "</worldbody>"},
    {"ForceRangeOfAJoint", kSwinging},
    {"Edited/GeomSize", kTwoBodies, [](mjModel& m) { m.geom_size[3 * 2] = .25; }, 1},
    {"Edited/Radius", kTwoBodies, [](mjModel& m) { m.geom_size[3 * 3] = .12; }, 1},
    {"Edited/Margin", kTwoBodies, [](mjModel& m) { m.geom_margin[4] = .1; }, 1},
    {"Edited/Gap", kTwoBodies, [](mjModel& m) { m.geom_margin[3] = m.geom_gap[3] = .05; }, 1},
    {"Edited/Ipos", kTwoBodies, [](mjModel& m) { m.body_ipos[3] += .3; }, 1},
    {"Edited/Iquat", kTwoBodies,
     [](mjModel& m) {
       m.body_iquat[4] = std::sqrt(.5), m.body_iquat[7] = std::sqrt(.5);
       m.body_iquat[5] = m.body_iquat[6] = 0;
     },
     1},
    {"Edited/LongIquat", kTwoBodies, [](mjModel& m) { m.body_iquat[4] *= 1.5; }, 1},
    {"Edited/GeomPos", kTwoBodies, [](mjModel& m) { m.geom_pos[3 * 3 + 2] += .4; }, 1},
    {"Edited/GeomQuat", kTwoBodies, [](mjModel& m) { m.geom_quat[4 * 2] = .8; }, 1},
    {"Edited/Rbound", kTwoBodies, [](mjModel& m) { m.geom_rbound[4] *= .5; }, 1},
    {"Edited/Floor", kTwoBodies, [](mjModel& m) { m.geom_pos[2] += .15; }, 1},
    {"Edited/ContypeOn", kTwoBodies,
     [](mjModel& m) { m.geom_contype[2] = 2, m.geom_conaffinity[4] = 2; }},
    {"Edited/ContypeOff", kTwoBodies,
     [](mjModel& m) { m.geom_contype[2] = m.geom_conaffinity[2] = 0; }},
    {"Edited/BodyContype", kTwoBodies,
     [](mjModel& m) { m.body_contype[1] = m.body_conaffinity[1] = 0; }},
    {"Edited/BodyMargin", kTwoBodies, [](mjModel& m) { m.body_margin[1] = -.05; }, 1},
    {"FloorNotAtZero", kTwoBodies},
    {"DamperWithoutBias",
     "<worldbody><body><joint name='j' axis='0 0 1'/><geom size='.1' pos='.2 0 0'/></body>"
     "</worldbody><actuator><damper joint='j' kv='.2' ctrlrange='0 1'/></actuator>"},
    {"DamperOfAFreeJoint",
     "<option gravity='0 0 0'/><worldbody><body><freejoint name='j'/><geom size='.1'/></body>"
     "</worldbody><actuator><damper joint='j' kv='.2' gear='1 0 0 0 1 0' ctrlrange='0 1'/>"
     "</actuator>"},
    {"RungeKuttaOffCentre",
     "<option integrator='RK4'/><worldbody><geom type='plane' size='5 5 1'/>"
     "<body pos='0 0 .3'><freejoint/><geom size='.1' pos='.05 0 0'/></body></worldbody>"},
    {"InvertedForceRange", kSwinging,
     [](mjModel& m) {
       m.actuator_forcelimited[0] = 1;
       m.actuator_forcerange[0] = 1, m.actuator_forcerange[1] = -1;
     }},
    {"ShortCapsules",
     "<worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 .3'><freejoint/>"
     "<geom type='capsule' size='.1 .1'/></body><body pos='0 .05 .6'><freejoint/>"
     "<geom type='capsule' size='.1 .1'/></body></worldbody>",
     [](mjModel& m) { m.geom_size[3 * 2 + 1] = 0; }},
    {"ManyEqualities",
     "<option timestep='.01'/><worldbody><geom type='plane' size='5 5 1'/>"
     "<body name='a' pos='0 0 .3'><freejoint/><geom size='.1'/></body>"
     "<body name='b' pos='.3 0 .3'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
     "</worldbody><equality><weld body1='a' body2='b'/><connect body1='b' anchor='.1 0 0'/>"
     "</equality>"},
};

class Found : public testing::TestWithParam<Case> {
 protected:
  static ModelPtr Load() { return LoadXml(std::string("<mujoco>") + GetParam().xml + "</mujoco>"); }
};

TEST_P(Found, EqualsMjStepOrIsRefused) {
  const ModelPtr m = Load();
  GetParam().edit(*m);
  for (const int width : Widths()) {
    const std::string refusal = Plan::Make(*m, *KernelsOfWidth(width)).refusal;
    EXPECT_EQ(refusal.find("differ"), std::string::npos) << refusal;
    if (!refusal.empty()) return;
  }
  ClosedLoop loop(*m, 2);
  loop.Run(6'000);
  ExpectEqual(loop, GetParam().left_to_mujoco);
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::erase(name, '/');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Lanes, Found, testing::ValuesIn(kCases), NameOf);

}  // namespace
}  // namespace pyfastenv::lanes
