// Actuators, tendons, passive forces and implicit integration, each in a small model, in closed
// loops against mj_step; and with numbers of each environment's own.
#include <gtest/gtest.h>

#include <algorithm>

#include "closed_loop.h"

namespace pyfastenv::lanes {
namespace {

struct Forces {
  const char* name;
  const char* option = "timestep='.005'";
  const char* flag = "";
  const char* joint = "damping='.5'";  // defaults
  const char* bodies = "";             // beside the creature
  const char* tendons = "";
  const char* actuators = "<motor joint='hip1' gear='9'/><motor joint='knee2' gear='7'/>";
  std::vector<std::string> fields = {};
};
void PrintTo(const Forces& forces, std::ostream* out) { *out << forces.name; }

// A creature of two legs and a tail that touches the floor and its limits.
std::string Xml(const Forces& f) {
  const auto leg = [](const std::string& n, const std::string& x) {
    return "<body pos='" + x + " 0 0'><joint name='hip" + n +
           "' axis='0 1 0' range='-40 40'/><geom type='capsule' fromto='0 .02 -.03 0 .05 -.2' "
           "size='.05'/><body pos='0 .05 -.2'><joint name='knee" +
           n +
           "' axis='.1 -1 0' pos='.01 0 .01' range='10 80'/><geom type='capsule' "
           "fromto='.01 .02 -.01 .03 0 -.25' size='.04'/><site name='foot" +
           n + "' pos='.03 0 -.25'/></body></body>";
  };
  return std::string("<mujoco><option ") + f.option + "><flag " + f.flag +
         "/></option><default><joint armature='.02' limited='true' " + f.joint +
         "/><general ctrllimited='true' ctrlrange='-1 1'/></default><worldbody>"
         "<geom type='plane' size='5 5 1'/><body name='torso' pos='0 0 .45'><freejoint/>"
         "<geom type='capsule' fromto='-.2 0 0 .2 0 0' size='.08'/><site name='back' pos='.1 0 "
         ".05' euler='10 20 30'/>" +
         leg("1", "-.2") + leg("2", ".2") +
         "<body pos='0 .1 .05'><joint name='tail' type='slide' axis='0 1 .2' range='-.1 .1'/>"
         "<geom size='.04' mass='.3'/></body></body>" +
         f.bodies + "</worldbody><tendon>" + f.tendons + "</tendon><actuator>" + f.actuators +
         "</actuator></mujoco>";
}

constexpr char kServos[] =
    "<position joint='hip1' kp='30' kv='1' forcerange='-4 3'/><velocity joint='knee1' kv='2'/>"
    "<general joint='hip2' gainprm='3' biastype='affine' biasprm='.5 -2 -.1' gear='2'/>"
    "<general joint='tail' gaintype='affine' gainprm='3 .5 -.7' biastype='affine' "
    "biasprm='0 -20 -3'/>";

constexpr char kFreeBodies[] =
    "<body pos='.6 0 .5' euler='20 30 0'><freejoint name='box'/><geom type='box' size='.1 .06 "
    ".03'/></body>"
    "<body pos='-.7 0 .5'><freejoint/><geom size='.05' pos='.1 0 .02'/><geom type='box' "
    "size='.05 .1 .02' euler='10 50 20'/></body>"
    "<body pos='0 .9 .5'><freejoint/><geom size='.05'/><body pos='.1 0 0'><geom type='box' "
    "size='.05 .03 .02' euler='10 50 20'/></body></body>";

constexpr char kDrone[] =
    "<body pos='.6 0 .5'><freejoint name='drone'/><geom type='box' size='.1 .1 .03'/><body "
    "pos='.1 0 0'><joint axis='0 1 0' range='-20 20'/><geom type='box' size='.1 .01 .03'/></body>"
    "</body>";

constexpr char kFloating[] =
    "<body pos='.6 0 .5' gravcomp='1'><freejoint/><geom type='box' size='.1 .06 .03'/><body "
    "pos='.1 0 0'><joint axis='0 1 0' range='-20 20'/><geom size='.03'/></body></body>"
    "<body pos='0 .9 .5' gravcomp='.5'><joint name='arm' axis='0 1 0' range='-40 40'/><geom "
    "size='.05' pos='.2 0 0'/><body pos='.3 0 0' gravcomp='1.2'><joint axis='0 1 1' range='-40 "
    "40'/><geom type='box' size='.05 .03 .02' pos='.1 0 0'/></body></body>";

constexpr char kTendons[] =
    "<fixed name='legs' stiffness='20' springlength='-.1 .2' damping='.7' armature='.03'>"
    "<joint joint='hip1' coef='.8'/><joint joint='knee1' coef='-.4'/><joint joint='hip2' "
    "coef='-1'/><joint joint='tail' coef='3'/><joint joint='knee2' coef='.3'/></fixed>"
    "<fixed name='backwards' stiffness='3'><joint joint='knee2' coef='.8'/><joint joint='hip1' "
    "coef='-.5'/></fixed>"
    "<fixed name='damper' damping='.4'><joint joint='hip2' coef='1'/></fixed>"
    "<fixed name='idle'><joint joint='hip2' coef='1'/></fixed>";

constexpr char kNonlinearTendons[] =
    "<fixed stiffness='20 3 1' springlength='-.1 .2' damping='.7 .2 .1'><joint joint='hip1' "
    "coef='.8'/><joint joint='knee1' coef='-.4'/></fixed>"
    "<fixed stiffness='0 3 1' damping='0 0 .1'><joint joint='hip2' coef='.8'/></fixed>";

constexpr char kActivations[] =
    "<intvelocity joint='hip1' kp='20' kv='.5' actrange='-.5 .3'/>"
    "<general joint='knee1' dyntype='filter' dynprm='.02' gainprm='9'/>"
    "<general joint='hip2' dyntype='filterexact' dynprm='.01' gaintype='affine' gainprm='9 .1 -.2' "
    "biastype='affine' biasprm='0 -3 -.2' actearly='true' actlimited='true' actrange='-.5 .5'/>"
    "<general tendon='legs' dyntype='filterexact' dynprm='.003' gainprm='3'/>"
    "<general tendon='idle' dyntype='integrator' gainprm='3' biastype='affine' "
    "biasprm='0 -2 -.3' actearly='true' actlimited='true' actrange='-.2 .1'/>"
    "<motor joint='tail' gear='5'/>";

// one of them has a force though it is disabled: that to which it is clamped
constexpr char kGroups[] =
    "<motor joint='hip1' gear='9'/><position joint='knee1' kp='9' kv='1' group='1' "
    "forcerange='.1 2'/><intvelocity joint='hip2' kp='20' kv='.5' actrange='-.5 .3' group='1'/>"
    "<general tendon='legs' dyntype='filterexact' dynprm='.03' gainprm='3' group='30'/>"
    "<general joint='knee2' dyntype='filter' dynprm='.02' gainprm='9' actlimited='true' "
    "actrange='.1 .5' group='2'/>";

constexpr char kLimitedTendons[] =
    "<fixed name='legs' damping='.7' actuatorfrcrange='-1 .5'><joint joint='hip1' coef='.8'/>"
    "<joint joint='knee1' coef='-.4'/></fixed>"
    "<fixed name='backwards' actuatorfrcrange='-1.5 3'><joint joint='knee2' coef='.8'/></fixed>"
    "<fixed name='idle' actuatorfrcrange='0 2'><joint joint='hip2' coef='1'/></fixed>";

constexpr char kRotations[] =
    "<body pos='.6 0 .5' gravcomp='1'><freejoint name='drone'/><geom type='box' size='.1 .1 .03'/>"
    "<body pos='.1 0 0'><joint axis='0 1 0' range='-20 20'/><geom size='.03'/></body></body>"
    "<body pos='0 .9 .5' gravcomp='.9'><joint name='ball' type='ball' range='0 70' "
    "actuatorgravcomp='true'/><geom type='capsule' fromto='0 0 0 .3 .1 0' size='.05'/></body>";

constexpr char kTwisters[] =
    "<motor joint='ball' gear='1 2 -.3'/><velocity jointinparent='drone' kv='.3' "
    "gear='1 2 3 .1 .2 -.3'/>"
    "<general joint='ball' gaintype='affine' gainprm='3 .5 -.1' gear='.3 1 .2'/>"
    "<general jointinparent='ball' gaintype='affine' gainprm='1 .2 -.2' gear='.3 .1 2' "
    "forcerange='-.5 .4'/>";

constexpr char kHeavyMotors[] =
    "<motor joint='hip1' gear='3' damping='.01 .02 .001' armature='.002'/>"
    "<motor joint='hip1' damping='.1'/><motor joint='knee2' gear='-2' armature='.01'/>"
    "<position tendon='legs' kp='3' gear='1.5' damping='.2 .1' armature='.02'/>"
    "<motor tendon='idle' damping='.1'/>";

constexpr char kTendonActuators[] =
    "<motor tendon='legs' gear='3'/><position tendon='backwards' kp='9' kv='.5' gear='1.5' "
    "forcerange='-2 2'/><motor joint='hip1' gear='5'/>"
    "<general tendon='idle' gaintype='affine' gainprm='3 .5 -.7' biastype='affine' "
    "biasprm='0 -2 -.3'/>";

constexpr char kSpatialTendons[] =
    "<spatial name='rope' stiffness='9' damping='.3' springlength='.1 .2' range='0 .7' "
    "limited='true'><site site='foot1'/><site site='back'/></spatial>"
    "<spatial name='pulley' frictionloss='.2'><site site='foot2'/><site site='back'/>"
    "<pulley divisor='2'/><site site='back'/><site site='foot1'/></spatial>"
    "<spatial name='bent'><site site='foot1'/><geom geom='hip' sidesite='back'/><site "
    "site='foot2'/></spatial>";

constexpr char kHip[] =
    "<body pos='0 .9 .5'><joint name='hip' axis='0 1 0' range='-40 40'/><geom name='hip' "
    "type='cylinder' size='.1 .2'/></body>";

constexpr char kSpatialActuators[] =
    "<motor tendon='bent' gear='3'/><position tendon='pulley' kp='9' kv='.5' gear='1.5' "
    "forcerange='-2 2'/><muscle tendon='rope' lengthrange='.1 .5' force='40'/>"
    "<muscle joint='knee1' lengthrange='-1 1' force='9' timeconst='.01 .03' tausmooth='.2' "
    "ctrllimited='false'/>"
    "<muscle joint='hip2' lengthrange='-1 1' vmax='.3' fpmax='2' scale='20' "
    "ctrlrange='.1 .9'/>";

constexpr char kThrusters[] =
    "<motor site='back' gear='0 0 9 0 0 -.2'/><motor site='foot1' gear='1 2 3 .1 .2 .3'/>"
    "<general site='foot2' gear='0 0 1 0 0 0' biastype='affine' biasprm='1 0 -.3'/>"
    "<motor site='back' gear='0 0 0 0 0 0'/>";

const Forces kForces[] = {
    {.name = "Servos", .actuators = kServos},
    {.name = "ImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .actuators = kServos},
    {.name = "ImplicitFastUndamped",
     .option = "timestep='.005' integrator='implicitfast'",
     .joint = "",
     .actuators = kServos},
    {.name = "ImplicitFastWithOwnNumbers",
     .option = "timestep='.005' integrator='implicitfast'",
     .actuators = kServos,
     .fields = {"body_mass", "body_inertia", "dof_damping", "dof_armature", "actuator_gear",
                "actuator_gainprm", "actuator_biasprm", "actuator_forcerange"}},
    {.name = "Tendons", .tendons = kTendons, .actuators = kTendonActuators},
    {.name = "TendonsByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .tendons = kTendons,
     .actuators = kTendonActuators},
    {.name = "TendonsByRungeKutta",
     .option = "timestep='.005' integrator='RK4'",
     .tendons = kTendons,
     .actuators = kTendonActuators},
    {.name = "Activations", .tendons = kTendons, .actuators = kActivations},
    {.name = "ActivationsByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .tendons = kTendons,
     .actuators = kActivations},
    {.name = "ActivationsByRungeKutta",
     .option = "integrator='RK4' timestep='.002'",
     .tendons = kTendons,
     .actuators = kActivations},
    {.name = "FreeJointActuators",
     .bodies = kDrone,
     .actuators = "<motor joint='drone' gear='1 2 30 .1 .2 -.3'/><motor joint='hip1' gear='9'/>"},
    {.name = "FreeJointServosByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .bodies = kDrone,
     .actuators = "<velocity joint='drone' kv='.2' gear='1 2 3 .1 .2 -.3'/><motor joint='hip1'/>"},
    {.name = "Polynomials",
     .joint = "stiffness='3 2 -.5' damping='.5 .3 .02'",
     .tendons = kNonlinearTendons},
    {.name = "PolynomialsAlone",
     .option = "timestep='.005' integrator='implicitfast'",
     .joint = "stiffness='0 2 .5' damping='0 .3 .02'",
     .tendons = kNonlinearTendons},
    {.name = "GravityCompensation",
     .joint = "damping='.5' actuatorgravcomp='true'",
     .bodies = kFloating},
    {.name = "GravityCompensationWithoutActuators",
     .joint = "damping='.5' actuatorgravcomp='true'",
     .bodies = kFloating,
     .actuators = ""},
    {.name = "GravityCompensationWithOwnNumbers",
     .option = "timestep='.005' integrator='implicitfast'",
     .bodies = kFloating,
     .fields = {"body_gravcomp", "body_mass", "opt.gravity"}},
    {.name = "Wind",
     .option = "timestep='.005' density='100' viscosity='.1' wind='3 -2 1'",
     .bodies = kFreeBodies},
    {.name = "FluidByImplicitFast",
     .option =
         "timestep='.005' integrator='implicitfast' density='100' viscosity='.1' wind='3 -2 1'",
     .bodies = kDrone},
    {.name = "FluidByImplicitFastWithOwnNumbers",
     .option = "timestep='.005' integrator='implicitfast' density='100' viscosity='.1'",
     .bodies = kDrone,
     .fields = {"opt.density", "opt.viscosity", "body_inertia"}},
    {.name = "SingleFreeBodiesByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast' density='100' viscosity='.1'",
     .bodies = kFreeBodies},
    {.name = "SingleFreeBodiesWithOwnNumbers",
     .option = "timestep='.005' integrator='implicitfast'",
     .bodies = kFreeBodies,
     .fields = {"body_mass", "body_inertia", "dof_damping"}},
    {.name = "SpatialTendons",
     .bodies = kHip,
     .tendons = kSpatialTendons,
     .actuators = kSpatialActuators},
    {.name = "SpatialTendonsByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .bodies = kHip,
     .tendons = kSpatialTendons,
     .actuators = kSpatialActuators},
    {.name = "SpatialTendonsByRungeKutta",
     .option = "timestep='.002' integrator='RK4'",
     .bodies = kHip,
     .tendons = kSpatialTendons,
     .actuators = kSpatialActuators},
    {.name = "SpatialTendonsWithOwnNumbers",
     .bodies = kHip,
     .tendons = kSpatialTendons,
     .actuators = kSpatialActuators,
     .fields = {"tendon_stiffness", "tendon_damping", "tendon_lengthspring", "site_pos", "geom_pos",
                "actuator_gainprm", "actuator_biasprm"}},
    {.name = "Thrusters", .actuators = kThrusters},
    {.name = "ThrustersByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .actuators = kThrusters},
    {.name = "TendonForceLimits", .tendons = kLimitedTendons, .actuators = kTendonActuators},
    {.name = "TendonForceLimitsByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .tendons = kLimitedTendons,
     .actuators = kTendonActuators},
    {.name = "ActuatorsOfRotations", .bodies = kRotations, .actuators = kTwisters},
    {.name = "ActuatorsOfRotationsByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .bodies = kRotations,
     .actuators = kTwisters},
    {.name = "DampingOfActuators", .joint = "", .tendons = kTendons, .actuators = kHeavyMotors},
    {.name = "DampingOfActuatorsByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .tendons = kTendons,
     .actuators = kHeavyMotors,
     .fields = {"dof_damping", "dof_armature", "tendon_damping", "tendon_armature"}},
    {.name = "SpringsOff",
     .flag = "spring='disable'",
     .joint = "stiffness='3' damping='.5'",
     .tendons = kTendons},
    {.name = "DampersOffByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .flag = "damper='disable'",
     .joint = "stiffness='3' damping='.5'",
     .tendons = kTendons,
     .actuators = kServos},
    {.name = "PassiveForcesOff",
     .option = "timestep='.005' density='100' viscosity='.1'",
     .flag = "spring='disable' damper='disable'",
     .joint = "damping='.5' actuatorgravcomp='true'",
     .bodies = kFloating},
    {.name = "PassiveForcesOffByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast' density='100' viscosity='.1'",
     .flag = "spring='disable' damper='disable'",
     .bodies = kFloating},
    {.name = "ActuationOffByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast'",
     .flag = "actuation='disable'",
     .tendons = kTendons,
     .actuators = kActivations},
    {.name = "ActuatorGroupsOffByImplicitFast",
     .option = "timestep='.005' integrator='implicitfast' actuatorgroupdisable='0 30'",
     .tendons = kTendons,
     .actuators = kGroups},
    {.name = "ActuatorGroupsOffByRungeKutta",
     .option = "timestep='.002' integrator='RK4' actuatorgroupdisable='1 2'",
     .tendons = kTendons,
     .actuators = kGroups},
    {.name = "TendonsWithOwnNumbers",
     .option = "timestep='.005' integrator='implicitfast'",
     .tendons = kTendons,
     .actuators = kTendonActuators,
     .fields = {"wrap_prm", "tendon_stiffness", "tendon_damping", "tendon_armature",
                "tendon_lengthspring"}},
};

class SmoothForces : public testing::TestWithParam<Forces> {};

TEST_P(SmoothForces, EqualMjStepBitForBit) {
  const ModelPtr m = LoadXml(Xml(GetParam()));
  ClosedLoop loop(*m, 3, GetParam().fields);
  loop.Run(4'000);
  ExpectEqual(loop, 0.1);
  EXPECT_GT(loop.num_rows(), 100) << "the model tries no constraints";
}

INSTANTIATE_TEST_SUITE_P(Models, SmoothForces, testing::ValuesIn(kForces),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- refusals
// ------------------------------------------------------------------------------------

struct Refusal {
  Forces forces;
  const char* reason;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.forces.name; }

constexpr char kSpatial[] =
    "<spatial name='rope' armature='1'><site site='foot1'/><site site='foot2'/></spatial>";

const Refusal kRefused[] = {
    {{.name = "ArmatureOfSpatialTendons", .tendons = kSpatial},
     "armature of tendons where there are spatial ones (tendon 'rope')"},
    {{.name = "FieldsOfSpatialTendons",
      .tendons = "<spatial name='rope'><site site='foot1'/><site site='foot2'/></spatial>",
      .fields = {"tendon_stiffness"}},
     "per-environment tendon_stiffness (there are spatial tendons)"},
    {{.name = "ServosOfBalls",
      .bodies = kRotations,
      .actuators = "<position name='turn' joint='ball' kp='1'/>"},
     "servos on ball joints (actuator 'turn')"},
    {{.name = "GearsOfActuatorsWithDamping",
      .actuators = "<motor joint='hip1' gear='3' damping='.1'/>",
      .fields = {"actuator_gear"}},
     "per-environment actuator_gear (actuators have damping or armature)"},
    {{.name = "EllipsoidsInFluid",
      .option = "density='1'",
      .bodies = "<body><freejoint/><geom size='.1' fluidshape='ellipsoid'/></body>"},
     "the ellipsoid fluid model"},
    {{.name = "EllipsoidsInFluidOfNegativeViscosity",
      .option = "viscosity='-1'",
      .bodies = "<body><freejoint/><geom size='.1' fluidshape='ellipsoid'/></body>"},
     "the ellipsoid fluid model"},
    {{.name = "ActuatorsBetweenSites",
      .actuators = "<motor site='back' refsite='foot1' gear='1'/>"},
     "actuators between two sites"},
};

class RefusedForces : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedForces, WithTheReason) {
  const ModelPtr m = LoadXml(Xml(GetParam().forces));
  const PlanResult result = Plan::Make(*m, BestKernels(), GetParam().forces.fields);
  EXPECT_EQ(result.plan, nullptr);
  EXPECT_NE(result.refusal.find(GetParam().reason), std::string::npos) << result.refusal;
}

INSTANTIATE_TEST_SUITE_P(Models, RefusedForces, testing::ValuesIn(kRefused),
                         [](const auto& info) { return std::string(info.param.forces.name); });

}  // namespace
}  // namespace pyfastenv::lanes
