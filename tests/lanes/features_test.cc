// Features that no robot of gymnasium's has, each in a small model: those that lanes do, in closed
// loops against mj_step; those that they do not, refused with a sentence that names them.
#include <gtest/gtest.h>

#include <cmath>

#include "closed_loop.h"
#include "creature.h"

namespace pyfastenv::lanes {
namespace {

const Variant kSupported[] = {
    {"Plain", [](Pieces&) {}},
    {"PlanarRoot", [](Pieces& p) { p.root = kPlanar; }},
    {"TurntableRoot",
     [](Pieces& p) { p.root = "<joint type='hinge' axis='0 0 1' limited='false'/>"; }},
    {"RungeKutta", [](Pieces& p) { p.option += " integrator='RK4'"; }},
    {"RungeKuttaPlanar", [](Pieces& p) { p.option += " integrator='RK4'", p.root = kPlanar; }},
    {"ImplicitFast", [](Pieces& p) { p.option += " integrator='implicitfast'"; }},
    {"PGS", [](Pieces& p) { p.option += " solver='PGS' iterations='30'"; }},
    {"PGSPlanar", [](Pieces& p) { p.option += " solver='PGS'", p.root = kPlanar; }},
    {"OneIteration", [](Pieces& p) { p.option += " iterations='1' ls_iterations='4'"; }},
    {"NoTolerance", [](Pieces& p) { p.option += " tolerance='0' iterations='12'"; }},
    {"Impratio", [](Pieces& p) { p.option += " impratio='10'"; }},
    {"NoDamping", [](Pieces& p) { p.joint = "limited='true'"; }},
    {"ExplicitDamping", [](Pieces& p) { p.flag = "eulerdamp='disable'"; }},
    {"NoGravity", [](Pieces& p) { p.flag = "gravity='disable'"; }},
    {"NoWarmStart", [](Pieces& p) { p.flag = "warmstart='disable'"; }},
    {"NoWarmStartPGS",
     [](Pieces& p) { p.flag = "warmstart='disable'", p.option += " solver='PGS'"; }},
    {"NoActuation", [](Pieces& p) { p.flag = "actuation='disable'"; }},
    {"NoReset", [](Pieces& p) { p.flag = "autoreset='disable'"; }},
    {"ForwardInverse", [](Pieces& p) { p.flag = "fwdinv='enable'"; }},
    {"DiscreteInverse", [](Pieces& p) { p.flag = "invdiscrete='enable'"; }},
    {"NoLimits", [](Pieces& p) { p.flag = "limit='disable'"; }},
    {"NoConstraints", [](Pieces& p) { p.flag = "constraint='disable'"; }},
    {"Sensors",
     [](Pieces& p) {
       p.rest =
           "<sensor><clock/><touch site='sole1'/><subtreelinvel body='torso'/>"
           "<force site='sole2'/></sensor>";
     }},
    {"Energy", [](Pieces& p) { p.flag = "energy='enable'"; }},
    {"NoContacts", [](Pieces& p) { p.flag = "contact='disable'"; }},
    {"NoReferenceSafety",
     [](Pieces& p) { p.flag = "refsafe='disable'", p.geom = "solref='.008 1'"; }},
    {"ParentsTouch", [](Pieces& p) { p.flag = "filterparent='disable'"; }},
    {"NoMidphase", [](Pieces& p) { p.flag = "midphase='disable'"; }},
    {"Fluid", [](Pieces& p) { p.option += " density='1000' viscosity='.1'"; }},
    {"ViscousFluid", [](Pieces& p) { p.option += " viscosity='1'"; }},
    {"Springs", [](Pieces& p) { p.joint += " stiffness='3' springref='10'"; }},
    {"JointMargin", [](Pieces& p) { p.joint += " margin='.3'"; }},
    {"GeomMargin", [](Pieces& p) { p.geom = "margin='.02'"; }},
    {"Frictionless", [](Pieces& p) { p.geom = "condim='1'"; }},
    {"FrictionlessElliptic",
     [](Pieces& p) { p.geom = "condim='1'", p.option += " cone='elliptic'"; }},
    {"MixedContacts",
     [](Pieces& p) {
       p.floor = "<geom type='plane' size='5 5 1' condim='1' friction='.2'/>";
       p.torso =
           "<geom type='capsule' fromto='-.2 0 0 .2 0 0' size='.08' condim='1' "
           "friction='.7' solmix='3'/><geom type='sphere' size='.1' pos='.3 0 .05' "
           "friction='1.5' solref='.05 .9' solimp='.8 .99 .01'/>";
       p.geom = "condim='3'";
     }},
    {"Priority",
     [](Pieces& p) {
       p.floor = "<geom type='plane' size='5 5 1' priority='1' friction='.3' solref='.03 1'/>";
     }},
    {"DirectReference", [](Pieces& p) { p.geom = "solref='-3000 -80'"; }},
    {"FlatImpedance", [](Pieces& p) { p.geom = "solimp='.9 .9 .001'"; }},
    {"ZeroWidth", [](Pieces& p) { p.geom = "solimp='.8 .95 0'"; }},
    {"Exclude",
     [](Pieces& p) { p.rest = "<contact><exclude body1='shin1' body2='torso'/></contact>"; }},
    {"TiltedFloors",
     [](Pieces& p) {
       p.floor =
           "<geom type='plane' size='5 5 1' euler='10 -5 30' pos='0 0 .05'/>"
           "<geom type='plane' size='5 5 1' euler='-20 0 0'/>";
     }},
    {"Obstacles",
     [](Pieces& p) {
       p.world =
           "<geom type='capsule' size='.1 .5' euler='90 0 20' pos='.1 0 .1'/>"
           "<geom type='sphere' size='.15' pos='-.2 0 .05'/>";
     }},
    {"Mocap",
     [](Pieces& p) {
       p.world =
           "<body mocap='true' pos='.3 0 .2' quat='1 .1 .2 0'><geom size='.2'/><geom type='box' "
           "size='.1 .1 .1' pos='.2 0 0'/></body>"
           "<body name='hand' mocap='true' pos='0 0 .6'/>";
       p.rest = "<equality><weld body1='hand' body2='torso' solref='.2 1'/></equality>";
     }},
    {"Boxes",
     [](Pieces& p) {
       p.torso = Several("box", ".2 .08 .1"), p.world = Several("box", ".1 .1 .1");
     }},
    {"Cylinders",
     [](Pieces& p) {
       p.torso = Several("cylinder", ".1 .15"), p.world = Several("cylinder", ".1 .1");
     }},
    {"Ellipsoids",
     [](Pieces& p) {
       p.torso = Several("ellipsoid", ".1 .15 .2"), p.world = Several("ellipsoid", ".2 .1 .1");
     }},
    {"Meshes",
     [](Pieces& p) {
       p.rest =
           "<asset><mesh name='rock' vertex='-.1 -.1 -.1 .2 0 0 0 .2 0 0 0 .2 .15 .1 .1'/></asset>";
       p.torso = "<geom type='mesh' mesh='rock'/>";
       p.world =
           "<geom type='mesh' mesh='rock' pos='.1 .1 .1'/><geom type='box' size='.1 .1 .1' "
           "pos='-.2 0 0'/>";
     }},
    {"CoincidingCentres",
     [](Pieces& p) {
       p.torso +=
           "<body><joint axis='0 1 0' limited='false'/><inertial pos='0 0 .1' mass='.1' "
           "diaginertia='.01 .01 .01'/><body><joint axis='1 0 0' limited='false'/>"
           "<geom size='.06'/><geom size='.02'/></body></body><geom size='.05'/>";
     }},
    {"HeightField",
     [](Pieces& p) {
       p.rest =
           "<asset><hfield name='hills' nrow='3' ncol='3' elevation='0 1 0 1 0 2 0 1 1' size='1 1 "
           ".2 .1'/></asset>";
       p.floor = "<geom type='hfield' hfield='hills'/>";
     }},
    {"MultipleContactsOff",
     [](Pieces& p) {
       p.flag = "multiccd='disable'";
       p.torso = Several("cylinder", ".1 .15"), p.world = Several("box", ".1 .1 .1");
     }},
    {"OldConvexCollisions",
     [](Pieces& p) {
       p.flag = "nativeccd='disable'";
       p.torso = Several("cylinder", ".1 .15"), p.world = Several("box", ".1 .1 .1");
     }},
    {"Gap",
     [](Pieces& p) { p.geom = "margin='.03' gap='.02'", p.torso = Several("box", ".2 .08 .1"); }},
    {"ContactPairs",
     [](Pieces& p) {
       p.torso = "<geom name='torso' type='capsule' fromto='-.2 0 0 .2 0 0' size='.08'/>";
       p.floor = "<geom name='floor' type='plane' size='5 5 1'/>";
       p.rest =
           "<contact><pair geom1='shin1' geom2='shin2' condim='1' margin='.05' gap='.02'/>"
           "<pair geom1='torso' geom2='foot2' margin='.3'/>"
           "<pair geom1='foot1' geom2='floor' friction='.3 .3 .1 .1 .1' solref='.05 1'/>"
           "<pair geom1='shin2' geom2='floor' condim='6' friction='.3 .9 .1 .2 .05'/>"
           "<exclude body1='shin1' body2='torso'/></contact>";
     }},
    {"FixedBodies",
     [](Pieces& p) {
       p.world =
           "<body pos='.1 0 .1' euler='0 20 0'><geom size='.1'/><geom size='.2 .2 .1' type='box' "
           "pos='-.1 .2 .1'/><body pos='.2 0 0'><geom type='capsule' size='.1 .2'/></body></body>";
     }},
    {"FixedPlane",
     [](Pieces& p) {
       p.world =
           "<body pos='0 0 .05' euler='0 10 0'><geom type='plane' size='1 1 1'/><geom size='.2'/>"
           "</body>";
     }},
    {"Servos",
     [](Pieces& p) {
       p.actuators =
           "<position joint='hip1' kp='30' kv='1' ctrlrange='-1 1'/>"
           "<velocity joint='knee1' kv='2'/>"
           "<general joint='hip2' gainprm='3' biastype='affine' biasprm='.5 -2 -.1' "
           "gear='2' forcelimited='true' forcerange='-4 3'/>";
     }},
    {"ForceLimits",
     [](Pieces& p) {
       p.joint += " actuatorfrclimited='true' actuatorfrcrange='-5 4'";
       p.actuators += "<motor joint='hip1' gear='7'/>";
     }},
    {"NoControlLimits", [](Pieces& p) { p.motor = "ctrllimited='false'"; }},
    {"ControlsNotClamped", [](Pieces& p) { p.flag = "clampctrl='disable'"; }},
    {"NoActuators", [](Pieces& p) { p.actuators = ""; }},
    {"AnotherTree",
     [](Pieces& p) {
       p.world =
           "<body pos='1 0 1'><joint type='slide' axis='1 0 0' range='-.5 .5'/>"
           "<joint type='slide' axis='0 1 0' range='-.5 .5'/>"
           "<geom type='box' size='.1 .1 .1' contype='0' conaffinity='0'/></body>";
     }},
    {"LimitsOnAnotherTree",
     [](Pieces& p) {
       p.world =
           "<body pos='1 0 1'><joint type='slide' axis='1 0 0' range='-.01 .01'/>"
           "<geom type='box' size='.1 .1 .1' contype='0' conaffinity='0'/></body>";
     }},
    {"ContactsOnAnotherTree",
     [](Pieces& p) {
       p.world =
           "<body pos='2 0 .1'><freejoint/><geom size='.1'/></body>"
           "<body pos='3 0 .1'><freejoint/><geom size='.1'/></body>";
     }},
    {"TreesTouch",
     [](Pieces& p) {
       p.world =
           "<body pos='.3 0 .1'><freejoint/><geom size='.1'/></body>"
           "<body pos='.3 0 .3'><freejoint/><geom size='.1'/></body>"
           "<body pos='-.3 .1 .1'><joint type='slide' axis='1 0 0' range='-.01 .01'/>"
           "<geom type='capsule' size='.1 .3' euler='0 90 0'/></body>";
     }},
    {"PushedCylinder",
     [](Pieces& p) {
       p.root = "<joint type='hinge' axis='0 0 1' limited='false'/>";
       p.floor = "<geom type='plane' size='5 5 1' pos='0 0 -.2'/>";
       p.world =
           "<body pos='.35 .1 .1'><joint type='slide' axis='1 0 0' limited='false'/>"
           "<joint type='slide' axis='0 1 0' limited='false'/>"
           "<geom type='cylinder' size='.1 .3'/></body>";
     }},
    {"PileOfBoxes",
     [](Pieces& p) {
       for (int i = 0; i < 4; ++i) {
         p.world += "<body pos='" + std::to_string(.5 + .05 * (i % 2)) + " 0 " +
                    std::to_string(.1 + .21 * i) +
                    "'><freejoint/><geom type='box' size='.1 .1 .1'/></body>";
       }
     }},
    {"FixedTree",
     [](Pieces& p) {
       p.world =
           "<body pos='1 0 1' euler='0 30 0'><geom type='box' size='.1 .1 .1' contype='0' "
           "conaffinity='0'/><site name='mark'/></body>";
     }},
    {"FrictionLoss", [](Pieces& p) { p.joint += " frictionloss='.7'"; }},
    {"FrictionLossStrong",
     [](Pieces& p) { p.joint += " frictionloss='9'", p.motor = "ctrllimited='false'"; }},
    {"FrictionLossOfSome",
     [](Pieces& p) {
       p.knee += " frictionloss='.3' solreffriction='.05 1.2' solimpfriction='.7 .9 .01'";
       p.root = kPlanar;
     }},
    {"FrictionLossRungeKutta",
     [](Pieces& p) { p.joint += " frictionloss='.7'", p.option += " integrator='RK4'"; }},
    {"FrictionLossOneIteration",
     [](Pieces& p) {
       p.joint += " frictionloss='.7'", p.option += " iterations='1' ls_iterations='5'";
     }},
    {"FrictionLossWithoutContacts",
     [](Pieces& p) { p.joint += " frictionloss='.7'", p.flag = "contact='disable'"; }},
    {"FrictionLossWithoutConstraints",
     [](Pieces& p) { p.joint += " frictionloss='.7'", p.flag = "constraint='disable'"; }},
    {"FrictionLossOnAnotherTree",
     [](Pieces& p) {
       p.world =
           "<body pos='0 0 1'><joint type='slide' frictionloss='1' limited='false'/><geom "
           "size='.1' contype='0' conaffinity='0'/></body>";
     }},
    {"FrictionLossOnTreesThatTouch",
     [](Pieces& p) {
       p.joint += " frictionloss='.7'";
       p.world =
           "<body pos='.3 0 .1'><freejoint/><geom size='.1'/></body>"
           "<body pos='-.3 .1 .1'><joint type='slide' axis='1 0 0' range='-.01 .01'/>"
           "<joint type='slide' axis='0 1 0' limited='false' frictionloss='0'/>"
           "<geom type='capsule' size='.1 .3' euler='0 90 0'/></body>"
           "<body pos='.5 0 .1'><joint type='slide' axis='1 0 0' limited='false'/>"
           "<geom type='box' size='.1 .1 .1'/></body>";
     }},
    {"EllipticConesPGS", [](Pieces& p) { p.option += " cone='elliptic' solver='PGS'"; }},
    {"EllipticConesNoSlip",
     [](Pieces& p) { p.option += " cone='elliptic' noslip_iterations='3'"; }},
    {"CG", [](Pieces& p) { p.option += " solver='CG'"; }},
    {"NoIslands", [](Pieces& p) { p.flag = "island='disable'"; }},
    {"ExactDiagonal", [](Pieces& p) { p.flag = "diagexact='enable'"; }},
    {"Sparse", [](Pieces& p) { p.option += " jacobian='sparse'"; }},
    {"SparseElliptic", [](Pieces& p) { p.option += " jacobian='sparse' cone='elliptic'"; }},
    {"SparseNoSlip", [](Pieces& p) { p.option += " jacobian='sparse' noslip_iterations='3'"; }},
    {"SparseRungeKuttaPGS",
     [](Pieces& p) { p.option += " jacobian='sparse' solver='PGS' integrator='RK4'"; }},
    {"SparseSensors",
     [](Pieces& p) {
       p.option += " jacobian='sparse'";
       p.rest =
           "<sensor><touch site='sole1'/><force site='sole2'/><torque site='sole1'/>"
           "<jointlimitpos joint='hip1'/><jointlimitvel joint='hip1'/>"
           "<jointlimitfrc joint='hip1'/></sensor>";
     }},
    {"SparseOnTreesThatTouch",
     [](Pieces& p) {
       p.option += " jacobian='sparse'";
       p.joint += " frictionloss='.7'";
       p.world =
           "<body pos='.3 0 .1'><freejoint/><geom size='.1'/></body>"
           "<body pos='-.3 .1 .1'><joint name='slide' type='slide' axis='1 0 0' range='-.1 .1'/>"
           "<geom type='capsule' size='.1 .3' euler='0 90 0'/></body>"
           "<body pos='.5 0 .1'><joint type='slide' axis='1 0 0' limited='false'/>"
           "<geom type='box' size='.1 .1 .1'/></body>";
       p.rest = "<equality><joint joint1='hip1' joint2='slide'/></equality>";
     }},
    {"FrictionLossOff",
     [](Pieces& p) { p.joint += " frictionloss='.7'", p.flag = "frictionloss='disable'"; }},
    {"PassiveTendon",
     [](Pieces& p) { p.rest = "<tendon><fixed><joint joint='hip1' coef='1'/></fixed></tendon>"; }},
};

class Supported : public testing::TestWithParam<Variant> {};

TEST_P(Supported, EqualsMjStepBitForBit) {
  Pieces pieces;
  GetParam().change(pieces);
  const ModelPtr m = LoadXml(Xml(pieces));
  ClosedLoop loop(*m, 3);
  loop.Run(4'000);
  ExpectEqual(loop, 0.1);
  if ((m->opt.disableflags & mjDSBL_CONSTRAINT) != 0) return;
  EXPECT_GT(loop.num_rows(), 100) << "the model tries no constraints";
}

INSTANTIATE_TEST_SUITE_P(Features, Supported, testing::ValuesIn(kSupported),
                         [](const auto& info) { return std::string(info.param.name); });

struct Refusal {
  const char* name;
  void (*change)(Pieces&);
  const char* reason;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

const Refusal kRefused[] = {
    {"Implicit", [](Pieces& p) { p.option += " integrator='implicit'"; }, "implicit"},
    {"Sleep", [](Pieces& p) { p.flag = "sleep='enable'"; }, "sleep"},
    {"LittleMemory", [](Pieces& p) { p.rest = "<size memory='1M'/>"; }, "less memory"},
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, WithTheReason) {
  Pieces pieces;
  GetParam().change(pieces);
  const ModelPtr m = LoadXml(Xml(pieces));
  const PlanResult result = Plan::Make(*m);
  EXPECT_EQ(result.plan, nullptr);
  EXPECT_NE(result.refusal.find(GetParam().reason), std::string::npos) << result.refusal;
}

INSTANTIATE_TEST_SUITE_P(Features, Refused, testing::ValuesIn(kRefused),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Refusals, ValuesThatALaterMujocoMayAdd) {
  struct Edit {
    void (*change)(mjModel&);
    const char* reason;
  };
  constexpr int kUnknown = 99;
  const Edit edits[] = {
      {[](mjModel& m) { m.opt.solver = kUnknown; }, "this solver"},
      {[](mjModel& m) { m.opt.cone = kUnknown; }, "this friction cone"},
      {[](mjModel& m) { m.opt.integrator = kUnknown; }, "this integrator"},
      {[](mjModel& m) { m.opt.disableflags |= 1 << 29; }, "this set of disabled features"},
      {[](mjModel& m) { m.opt.enableflags |= 1 << 29; }, "enabled extra features"},
      {[](mjModel& m) { m.jnt_type[m.njnt - 1] = kUnknown; }, "joints of this type"},
      {[](mjModel& m) { m.geom_type[m.ngeom - 1] = kUnknown; }, "geoms of this type"},
      {[](mjModel& m) { m.geom_sameframe[0] = kUnknown; }, "sameframe"},
      {[](mjModel& m) { m.actuator_trntype[0] = kUnknown; }, "actuators on other things"},
      {[](mjModel& m) { m.actuator_dyntype[0] = kUnknown; }, "dynamics of actuators"},
      {[](mjModel& m) { m.actuator_gaintype[0] = kUnknown; }, "gain"},
      {[](mjModel& m) { m.actuator_biastype[0] = kUnknown; }, "bias"},
  };
  for (const Edit& edit : edits) {
    const ModelPtr m = LoadXml(Xml({}));
    edit.change(*m);
    const PlanResult result = Plan::MakeUnchecked(*m);
    EXPECT_EQ(result.plan, nullptr) << edit.reason;
    EXPECT_NE(result.refusal.find(edit.reason), std::string::npos) << result.refusal;
  }
}

TEST(Refusals, NoneForRobots) {
  for (const Robot& robot : Robots()) {
    const ModelPtr m = LoadRobot(robot);
    for (const int width : Widths()) {
      EXPECT_EQ(Plan::Make(*m, *KernelsOfWidth(width)).refusal, "") << robot.name;
    }
  }
}

// Kernels that are wrong in the last bit of one number.
void StoreWrongly(const Tables& t, const void* scratch, int lane, double* row) {
  KernelsOfWidth(1)->store(t, scratch, lane, row);
  row[t.row.qvel] = std::nextafter(row[t.row.qvel], 1);
}

TEST(Refusals, APlanWhoseResultsDifferInABit) {
  Kernels wrong = *KernelsOfWidth(1);
  wrong.store = StoreWrongly;
  const ModelPtr m = LoadXml(Xml({}));
  const std::string refusal = Plan::Make(*m, wrong).refusal;
  EXPECT_EQ(refusal.rfind("lanes and mj_step differ on this machine, at step 0 of a trial near the "
                          "default pose in qvel[0] of joint ",
                          0),
            0u)
      << refusal;
  EXPECT_NE(Plan::MakeUnchecked(*m, wrong).plan, nullptr);
}

// A floor, balls that stand on it, a rope between the last two and a thruster on the last.
ModelPtr Balls(int count) {
  std::string xml =
      "<mujoco><worldbody><geom name='floor' type='plane' size='9 9 1'/><site name='s0'/>";
  for (int i = 1; i <= count; ++i) {
    const std::string n = std::to_string(i), x = std::to_string(0.21 * i);
    xml += "<body pos='" + x + " 0 .1'><freejoint/><geom size='.1'/><site name='s" + n +
           "' pos='0 0 .1'/><body pos='0 0 .2'><joint type='ball' damping='.1' limited='true' "
           "range='0 30'/><geom type='capsule' size='.05 .05'/></body></body>";
  }
  const auto site = [](int i) { return "<site site='s" + std::to_string(i) + "'/>"; };
  xml += "</worldbody><tendon><spatial stiffness='9' limited='true' range='0 .2'>" +
         site(count - 1) + site(count) + "</spatial></tendon><actuator><general site='s" +
         std::to_string(count) + "' gear='0 0 1 0 0 0'/></actuator></mujoco>";
  return LoadXml(xml);
}

TEST(ManyDofs, EqualMjStepBitForBit) {
  const ModelPtr m = Balls(9);
  ASSERT_GT(m->nv, 64);
  ClosedLoop loop(*m, 3);
  loop.Run(1'000);
  ExpectEqual(loop, 0.1);
  EXPECT_GT(loop.num_rows(), 100);
}

TEST(ManyDofs, WithNumbersOfTheirOwn) {
  const ModelPtr m = Balls(8);
  ASSERT_GT(m->nv, 64);
  ClosedLoop loop(*m, 3, {"body_mass", "geom_friction", "jnt_range", "dof_invweight0"});
  loop.Run(1'000);
  ExpectEqual(loop, 0.1);
}

TEST(ManyDofs, AreRefusedFrom257) {
  EXPECT_EQ(Plan::Make(*Balls(29)).refusal, "lanes do not do more than 256 degrees of freedom");
}

TEST(Refusals, AModelThatCannotMove) {
  const ModelPtr m = LoadXml("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>");
  EXPECT_EQ(Plan::Make(*m).refusal, "lanes do not do a model without degrees of freedom");
}

}  // namespace
}  // namespace pyfastenv::lanes
