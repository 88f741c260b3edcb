// Constraints, and ball joints with theirs, each in a small model: closed loops against mj_step.
#include <gtest/gtest.h>

#include <cstring>

#include "closed_loop.h"
#include "creature.h"
#include "settings.h"

namespace pyfastenv::lanes {
namespace {

// Balls with springs and limits, alone, beside slides, away from their bodies' origins.
constexpr char kRagDoll[] =
    "<body pos='.6 0 .5'><freejoint/><geom type='capsule' fromto='0 0 0 .2 0 .1' size='.06'/>"
    "<body pos='.2 0 .1'><joint type='ball' range='0 30' margin='.1' stiffness='3 2 1' "
    "springdamper='0 0' armature='.01'/><geom type='capsule' fromto='0 0 0 .2 0 .1' size='.05'/>"
    "<body pos='.2 0 .1'><joint type='slide' axis='1 0 .5' range='-.02 .02'/>"
    "<joint type='ball' pos='.01 .02 .03' range='0 20' frictionloss='.1'/>"
    "<geom type='capsule' fromto='0 0 0 .1 .1 .1' size='.04'/></body></body></body>"
    "<body pos='-.7 0 .5'><joint type='ball' pos='.02 0 .3' limited='false' stiffness='.5'/>"
    "<geom type='box' size='.1 .05 .04'/></body>";

// Six legs of two hinges each.
constexpr char kMoreLegs[] =
    "<replicate count='6' euler='0 0 60'><body pos='.2 0 0'><joint type='hinge' axis='0 1 0' "
    "range='-50 50'/><geom type='capsule' fromto='0 0 0 .2 0 -.1' size='.03'/>"
    "<body pos='.2 0 -.1'><joint type='hinge' axis='0 1 0' range='-50 50'/>"
    "<geom type='capsule' fromto='0 0 0 .05 0 -.2' size='.03'/></body></body></replicate>";

const Variant kConstraints[] = {
    // balls, and springs of rotations
    {"BallRoot", [](Pieces& p) { p.root = "<joint type='ball' limited='false'/>"; }},
    {"Balls", [](Pieces& p) { p.world = kRagDoll; }},
    {"BallsImplicitFast",
     [](Pieces& p) { p.world = kRagDoll, p.option += " integrator='implicitfast'"; }},
    {"BallsRungeKutta",
     [](Pieces& p) {
       p.world = kRagDoll, p.option += " integrator='RK4'", p.torso += "<geom size='.1'/>";
     }},
    {"BallsPGS",
     [](Pieces& p) {
       p.root = "<joint type='ball' range='0 30' stiffness='9'/>", p.option += " solver='PGS'";
     }},
    {"FreeJointSpring",
     [](Pieces& p) {
       p.root = "<joint type='free' stiffness='40 3 2' damping='.5 .2 .1' limited='false'/>";
     }},
    // cones
    {"Torsion", [](Pieces& p) { p.geom = "condim='4' friction='.8 .05 .01'"; }},
    {"Rolling", [](Pieces& p) { p.geom = "condim='6' friction='.8 .05 .01'"; }},
    {"RollingPGS",
     [](Pieces& p) {
       p.geom = "condim='6' friction='.8 .05 .01'", p.option += " solver='PGS' impratio='3'";
     }},
    {"AllCondims",
     [](Pieces& p) {
       p.floor = "<geom type='plane' size='5 5 1' condim='1' friction='.2'/>";
       p.torso =
           "<geom type='capsule' fromto='-.2 0 0 .2 0 0' size='.08' condim='4' "
           "friction='.7 .1 .2' solmix='3'/><geom type='sphere' size='.1' pos='.3 0 .05' "
           "condim='6' friction='1.5 .02 .03' solref='.05 .9' solimp='.8 .99 .01'/>";
       p.geom = "condim='3'", p.hip += " frictionloss='.3'", p.option += " impratio='4'";
     }},
    {"TreesRoll",
     [](Pieces& p) {
       p.geom = "condim='6' friction='.8 .05 .01'";
       p.world =
           "<body pos='.3 0 .1'><freejoint/><geom size='.1'/></body>"
           "<body pos='.3 0 .3'><freejoint/><geom size='.1' condim='4'/></body>"
           "<body pos='-.3 .1 .1'><joint type='slide' axis='1 0 0' range='-.01 .01'/>"
           "<geom type='capsule' size='.1 .3' euler='0 90 0' condim='1'/></body>";
     }},
    {"Elliptic", [](Pieces& p) { p.option += " cone='elliptic'"; }},
    {"EllipticImpratio",
     [](Pieces& p) {
       p.option += " cone='elliptic' impratio='10'", p.joint += " frictionloss='.3'";
     }},
    {"EllipticTorsion",
     [](Pieces& p) {
       p.option += " cone='elliptic'", p.geom = "condim='4' friction='.8 .05 .01'";
     }},
    {"EllipticRolling",
     [](Pieces& p) {
       p.option += " cone='elliptic' impratio='2'", p.geom = "condim='6' friction='.8 .05 .01'";
     }},
    {"EllipticAllCondims",
     [](Pieces& p) {
       p.floor = "<geom type='plane' size='5 5 1' condim='1' friction='.2'/>";
       p.torso =
           "<geom type='capsule' fromto='-.2 0 0 .2 0 0' size='.08' condim='4' "
           "friction='.7 .1 .2' solmix='3'/><geom type='sphere' size='.1' pos='.3 0 .05' "
           "condim='6' friction='1.5 .02 .03' solref='.05 .9' solimp='.8 .99 .01'/>"
           "<geom type='sphere' size='.1' pos='-.3 0 .05' condim='1'/>";
       p.geom = "condim='3'", p.hip += " frictionloss='.3'";
       p.option += " impratio='4' cone='elliptic'";
     }},
    {"EllipticRungeKutta",
     [](Pieces& p) { p.option += " cone='elliptic' integrator='RK4'", p.root = kPlanar; }},
    {"EllipticOneIteration",
     [](Pieces& p) { p.option += " cone='elliptic' iterations='1' ls_iterations='4'"; }},
    {"EllipticNoTolerance",
     [](Pieces& p) { p.option += " cone='elliptic' tolerance='0' iterations='12'"; }},
    {"EllipticTrees",
     [](Pieces& p) {
       p.geom = "condim='6' friction='.8 .05 .01'", p.option += " cone='elliptic'";
       p.world =
           "<body pos='.3 0 .1'><freejoint/><geom size='.1'/></body>"
           "<body pos='.3 0 .3'><freejoint/><geom size='.1' condim='4'/></body>"
           "<body pos='.6 0 .1'><freejoint/><geom type='box' size='.1 .05 .05' condim='3'/></body>"
           "<body pos='-.3 .1 .1'><joint type='slide' axis='1 0 0' range='-.01 .01'/>"
           "<geom type='capsule' size='.1 .3' euler='0 90 0' condim='1'/></body>";
       p.floor = "<geom type='plane' size='5 5 1' condim='1'/>";
     }},
    {"EllipticPile",
     [](Pieces& p) {
       p.option += " cone='elliptic' impratio='5'";
       for (int i = 0; i < 4; ++i) {
         p.world += "<body pos='" + std::to_string(.5 + .05 * (i % 2)) + " 0 " +
                    std::to_string(.1 + .21 * i) +
                    "'><freejoint/><geom type='box' size='.1 .1 .1'/></body>";
       }
     }},
    // more dofs than are unrolled, and more updates of the Hessian than are made at once
    {"ManyDofs",
     [](Pieces& p) {
       p.torso += kMoreLegs, p.geom = "condim='4' friction='.8 .05 .01'";
       p.joint += " frictionloss='.1'";
     }},
    {"EllipticManyDofs",
     [](Pieces& p) {
       p.torso += kMoreLegs, p.geom = "condim='6' friction='.6 .02 .01'";
       p.option += " cone='elliptic' impratio='10'";
     }},
    // solimp
    {"ImpedancePower", [](Pieces& p) { p.geom = "solimp='.8 .95 .02 .4 3.3'"; }},
    {"ImpedanceLine",
     [](Pieces& p) {
       p.geom = "solimp='.8 .95 .02 .4 1'", p.hip += " solimplimit='.7 .9 .1 .6 3'";
       p.knee += " solimplimit='.7 .9 .1 .6 .5'";
     }},
    // equalities
    {"TiedJoints",
     [](Pieces& p) {
       p.rest =
           "<equality><joint joint1='hip1' joint2='hip2' polycoef='.1 .9 .2 -.1 .05'/>"
           "<joint joint1='knee1' polycoef='.4 0 0 0 0' solref='.03 .8' solimp='.8 .9 .1 .4 3'/>"
           "<joint joint1='knee2' joint2='hip2' active='false'/></equality>";
     }},
    {"TiedJointsOfTrees",
     [](Pieces& p) {
       p.world =
           "<body pos='1 0 1'><joint name='far' type='slide' axis='1 0 0' limited='false'/>"
           "<geom type='box' size='.1 .1 .1' contype='0' conaffinity='0'/></body>"
           "<body pos='1 0 2'><joint name='farther' axis='1 0 0' limited='false'/>"
           "<geom type='box' pos='0 0 .1' size='.1 .1 .1' contype='0' conaffinity='0'/></body>";
       p.rest =
           "<equality><joint joint1='far' joint2='hip1' polycoef='0 0 1 0 0'/>"
           "<joint joint1='farther' polycoef='.4 0 0 0 0'/></equality>";
       p.joint += " frictionloss='.2'";
     }},
    {"Connected",
     [](Pieces& p) {
       p.rest =
           "<equality><connect body1='shin1' body2='shin2' anchor='0 0 -.2'/>"
           "<connect body1='torso' anchor='.1 0 .3' solref='.05 1' solimp='.6 .9 .1'/>"
           "</equality>";
     }},
    {"ConnectedSites",
     [](Pieces& p) {
       p.rest = "<equality><connect site1='sole1' site2='sole2'/></equality>";
       p.root = kPlanar, p.option += " integrator='RK4'";
     }},
    {"ConnectedAtItsJoint",
     [](Pieces& p) {
       p.rest = "<equality><connect body1='arm' anchor='0 0 0'/></equality>";
       p.world =
           "<body name='arm' pos='1 0 1'><joint axis='0 0 1' limited='false'/>"
           "<geom type='box' size='.1 .1 .1' contype='0' conaffinity='0'/></body>";
     }},
    {"Welded",
     [](Pieces& p) {
       p.rest =
           "<equality><weld body1='shin1' body2='torso' torquescale='.7'/>"
           "<weld body1='shin2' anchor='.1 .1 .1' relpose='.1 0 .2 .9 .1 0 .2'/></equality>";
     }},
    {"WeldedTrees",
     [](Pieces& p) {
       p.world = kRagDoll;
       p.world +=
           "<body name='box' pos='.3 0 .6'><freejoint/><geom type='box' size='.1 .05 .05'/>"
           "<site name='face' pos='.1 0 0' euler='0 40 10'/></body>"
           "<body name='other' pos='-.5 0 .1'><freejoint/><geom type='box' size='.1 .05 .05'/>"
           "</body>";
       p.rest =
           "<equality><weld site1='face' site2='sole2'/><weld body1='other' body2='shin1'/>"
           "</equality>";
       p.joint += " frictionloss='.2'", p.option += " cone='elliptic'";
     }},
    {"TiedPGS",
     [](Pieces& p) {
       p.option += " solver='PGS' iterations='30'", p.knee += " frictionloss='.3'";
       p.rest =
           "<equality><joint joint1='hip1' joint2='hip2' polycoef='.1 .9 .2 -.1 .05'/>"
           "<connect body1='shin1' body2='torso' anchor='0 0 -.1'/>"
           "<weld body1='shin2' anchor='.1 .1 .1' relpose='.1 0 .2 .9 .1 0 .2'/></equality>";
     }},
    {"TreesPGS",
     [](Pieces& p) {
       p.option += " solver='PGS'", p.joint += " frictionloss='.2'";
       p.world =
           "<body pos='.3 0 .1'><freejoint/><geom size='.1'/></body>"
           "<body pos='.3 0 .3'><freejoint/><geom size='.1'/></body>"
           "<body pos='.9 0 .1'><freejoint/><geom type='box' size='.1 .05 .05'/></body>"
           "<body pos='-.3 .1 .1'><joint type='slide' axis='1 0 0' range='-.01 .01'/>"
           "<geom type='capsule' size='.1 .3' euler='0 90 0'/></body>"
           "<body pos='3 .1 1'><freejoint/><geom size='.1' contype='0' conaffinity='0'/></body>";
     }},
    {"NoSlip",
     [](Pieces& p) {
       p.option += " noslip_iterations='20'", p.joint += " frictionloss='.2'";
       p.torso += "<geom type='sphere' size='.1' pos='.3 0 .05' condim='1'/>";
       p.knee += " frictionloss='.3'";
       p.rest = "<equality><joint joint1='hip1' joint2='hip2'/></equality>";
     }},
    {"NoSlipPGS",
     [](Pieces& p) {
       p.geom = "condim='6' friction='.8 .05 .01'";
       p.option += " solver='PGS' noslip_iterations='3' noslip_tolerance='0'";
     }},
    {"TreesNoSlip",
     [](Pieces& p) {
       p.geom = "condim='4' friction='.8 .05 .01'", p.option += " noslip_iterations='5'";
       p.world =
           "<body pos='.3 0 .1'><freejoint/><geom size='.1' condim='3'/></body>"
           "<body pos='.3 0 .3'><freejoint/><geom size='.1'/></body>"
           "<body pos='.9 0 .1'><freejoint/><geom type='box' size='.1 .05 .05'/></body>";
     }},
    {"EqualityOff",
     [](Pieces& p) {
       p.rest = "<equality><joint joint1='hip1' joint2='hip2'/></equality>";
       p.flag = "equality='disable'";
     }},
    // tendons, friction loss
    {"TiedTendons",
     [](Pieces& p) {
       p.rest =
           "<tendon><fixed name='a'><joint joint='hip1' coef='1'/><joint joint='knee1' coef='-.5'/>"
           "</fixed><fixed name='b'><joint joint='hip2' coef='2'/></fixed></tendon>"
           "<equality><tendon tendon1='a' tendon2='b' polycoef='.1 .9 .2 -.1 .05'/>"
           "<tendon tendon1='b' polycoef='.2 0 0 0 0' solref='.1 1'/></equality>";
     }},
    {"TendonLimits",
     [](Pieces& p) {
       p.rest =
           "<tendon><fixed limited='true' range='-.2 .3' margin='.1' solreflimit='.03 1'>"
           "<joint joint='hip1' coef='1'/><joint joint='knee1' coef='-.5'/></fixed>"
           "<fixed frictionloss='.8' solimpfriction='.7 .9 .1'><joint joint='hip2' coef='2'/>"
           "<joint joint='knee2' coef='1'/></fixed></tendon>";
       p.knee += " frictionloss='.2'";
     }},
    {"TendonsOfTrees",
     [](Pieces& p) {
       p.world =
           "<body pos='1 0 1'><joint name='far' type='slide' axis='1 0 0' limited='false'/>"
           "<geom type='box' size='.1 .1 .1' contype='0' conaffinity='0'/></body>";
       p.rest =
           "<tendon><fixed name='a' limited='true' range='-.2 .3' frictionloss='.5'>"
           "<joint joint='far' coef='-.5'/><joint joint='hip1' coef='1'/></fixed>"
           "<fixed name='b'><joint joint='hip2' coef='2'/></fixed></tendon>"
           "<equality><tendon tendon1='a' tendon2='b'/></equality>";
       p.option += " cone='elliptic'";
     }},
    {"FrictionLossPGS",
     [](Pieces& p) { p.joint += " frictionloss='.7'", p.option += " solver='PGS'"; }},
};

class Constraints : public testing::TestWithParam<Variant> {};

TEST_P(Constraints, EqualMjStepBitForBit) {
  Pieces pieces;
  GetParam().change(pieces);
  const ModelPtr m = LoadXml(Xml(pieces));
  ClosedLoop loop(*m, 3);
  loop.Run(settings().substeps / 25);
  ExpectEqual(loop, 0.1);
  EXPECT_GT(loop.num_rows(), 100) << "the model tries no constraints";
}

INSTANTIATE_TEST_SUITE_P(Features, Constraints, testing::ValuesIn(kConstraints),
                         [](const auto& info) { return std::string(info.param.name); });

// What the state switches off is off, in each lane by itself.
TEST(SwitchedEqualities, EqualMjStepBitForBit) {
  Pieces pieces;
  pieces.rest =
      "<equality><joint joint1='hip1' joint2='hip2'/><weld body1='shin1' body2='torso'/>"
      "<connect body1='torso' anchor='0 0 .3' active='false'/></equality>";
  const ModelPtr m = LoadXml(Xml(pieces));
  for (const int width : Widths()) {
    LaneStepper lanes(MakePlan(*m, width));
    const DataPtr d = MakeData(*m);
    Randomizer random(*m, 3);
    RowSet rows(*m, width), theirs(*m, width);
    for (int l = 0; l < width; ++l) {
      random.Reset(*d, 0.5);
      for (int e = 0; e < m->neq; ++e) d->eq_active[e] = (l + 3) >> e & 1;
      mj_getState(m.get(), d.get(), rows.row(l), mjSTATE_INTEGRATION);
      mj_setState(m.get(), d.get(), rows.row(l), mjSTATE_INTEGRATION);
      for (int k = 0; k < 100; ++k) mj_step(m.get(), d.get());
      mj_getState(m.get(), d.get(), theirs.row(l), mjSTATE_INTEGRATION);
    }
    EXPECT_EQ(lanes.Step(rows.from(0), rows.from(0), width, 100), 0);
    for (int l = 0; l < width; ++l) {
      EXPECT_EQ(std::memcmp(rows.row(l), theirs.row(l), rows.size() * sizeof(double)), 0)
          << "lane " << l << " of " << width;
    }
  }
}

}  // namespace
}  // namespace pyfastenv::lanes
