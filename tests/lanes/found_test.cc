// Small models in which lanes once had other physics than mj_step without a word, in closed loops
// against it; and numbers that lanes must leave to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "closed_loop.h"

namespace pyfastenv::lanes {
namespace {

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
    {"GainThatGrowsWithVelocity",
     "<option integrator='implicitfast'/><worldbody><body><joint name='j'/>"
     "<geom size='.1' pos='.2 0 0'/></body></worldbody><actuator>"
     "<general joint='j' gear='9' gaintype='affine' gainprm='5 1 -1'/></actuator>",
     [](mjModel&) {}, 1},
    {"PGSWithATreeThatNothingTouches",
     "<option solver='PGS'/><worldbody><body><joint type='ball'/>"
     "<geom type='box' size='.1 .1 .05' contype='0' conaffinity='0'/></body>"
     "<body pos='0 0 1'><joint axis='.3 .8 -.3' range='-2 20'/>"
     "<geom type='capsule' size='.05 .05' pos='-.2 -.2 -.2' density='10'/></body></worldbody>"},
    {"BoxesWithinTheirMargin",
     "<default><geom margin='.05'/></default><worldbody><body><freejoint/>"
     "<body><geom type='capsule' size='.05 .1'/></body>"
     "<body pos='-.3 -.2 0'><geom type='box' size='.05 .1 .05'/></body></body>"
     "<body pos='-.1 -.2 .05'><joint type='slide'/><geom type='box' size='.1 .1 .05'/></body>"
     "</worldbody>",
     [](mjModel&) {}, 1},
    {"TimeConstantOfZero",
     "<option integrator='RK4'/><worldbody><body><freejoint name='j'/><geom size='.1'/></body>"
     "</worldbody><actuator><general joint='j' dyntype='filterexact' dynprm='0' "
     "forcerange='0 20' gear='1 0 0 0 0 0'/></actuator>",
     [](mjModel&) {}, 1},
    {"FixedBodyInTheFloor",  // whose contact costs so much that both starts cost the same
     "<worldbody><geom type='plane' size='5 5 1' pos='0 0 .06' margin='.1' gap='.1'/>"
     "<body pos='0 0 .005'><geom type='capsule' size='.035 .056' pos='0 0 .08'/>"
     "<body pos='.1 0 .3'><joint frictionloss='.1' armature='.1' damping='.1'/>"
     "<geom size='.02' pos='.05 0 0' density='1'/></body></body></worldbody>"},
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

// What rests upright, aligned or exactly touching, as no random state does.
TEST_P(Found, EqualsMjStepFromTheDefaultPose) {
  const ModelPtr m = Load();
  GetParam().edit(*m);
  for (const int width : Widths()) {
    const PlanResult result = Plan::MakeUnchecked(*m, *KernelsOfWidth(width));
    if (result.plan == nullptr) return;
    LaneStepper lanes(result.plan);
    const DataPtr d = MakeData(*m);
    RowSet rows(*m, 2);
    mj_getState(m.get(), d.get(), rows.row(0), mjSTATE_INTEGRATION);
    for (int step = 0; step < 1'000; ++step) {
      const unsigned redo = lanes.Step(rows.from(0), rows.from(0), 1, 1, step % 2 == 0);
      mj_step(m.get(), d.get());
      mj_getState(m.get(), d.get(), rows.row(1), mjSTATE_INTEGRATION);
      if (redo != 0) std::copy_n(rows.row(1), rows.size(), rows.row(0));
      ASSERT_EQ(std::memcmp(rows.row(0), rows.row(1), rows.size() * sizeof(double)), 0)
          << width << " lanes, step " << step;
    }
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::erase(name, '/');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Lanes, Found, testing::ValuesIn(kCases), NameOf);

}  // namespace
}  // namespace pyfastenv::lanes
