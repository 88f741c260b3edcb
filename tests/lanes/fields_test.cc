// Per-environment model fields: closed loops in which every environment has its own numbers,
// against mj_step on a model that has them; and those that lanes leave to mj_step.
#include <gtest/gtest.h>

#include <algorithm>

#include "closed_loop.h"
#include "settings.h"

namespace pyfastenv::lanes {
namespace {

// ---- gymnasium's robots, with what domain randomisation draws -----------------------------------

class RandomisedRobot : public testing::TestWithParam<Robot> {};

TEST_P(RandomisedRobot, EqualsMjStepBitForBit) {
  const ModelPtr m = LoadRobot(GetParam());
  ClosedLoop loop(*m, GetParam().frame_skip,
                  {"body_mass", "body_inertia", "geom_friction", "dof_damping", "dof_armature",
                   "actuator_gear", "opt.gravity"});
  loop.Run(settings().substeps);
  ExpectEqual(loop, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Robots, RandomisedRobot, testing::ValuesIn(Robots()),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- every field --------------------------------------------------------------------------------

constexpr char kCreature[] = R"(
<mujoco>
  <option timestep=".005" density="50" viscosity=".2" %s/>
  <default>
    <geom friction=".8" solref=".03 .9" solimp=".85 .95 .002"/>
    <joint damping=".5" armature=".02" stiffness="2" springref="5" limited="true" margin=".05"
           actuatorfrclimited="true" actuatorfrcrange="-9 8"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction=".3"/>
    <body pos="1 2 1">
      <geom name="target" size=".1" pos=".1 0 0" euler="5 6 7" contype="0" conaffinity="0"/>
    </body>
    <site name="home" pos=".3 0 .2" euler="0 20 0"/>
    <body name="torso" pos="0 0 .45">
      <freejoint/>
      <geom type="capsule" fromto="-.2 0 0 .2 0 0" size=".08"/>
      <body pos="-.2 0 0" euler="3 2 1">
        <joint name="hip" axis="0 1 0" range="-40 40" ref="3"/>
        <geom type="capsule" fromto="0 .02 -.03 0 .05 -.2" size=".05"/>
        <body pos="0 .05 -.2">
          <joint name="knee" axis=".1 -1 0" pos=".01 0 .01" range="10 80"/>
          <geom type="capsule" fromto=".01 .02 -.01 .03 0 -.25" size=".04" condim="1"/>
          <body pos=".03 0 -.25">
            <joint name="toe" frictionloss="1.5" type="slide" axis="0 0 1" range="-.02 .02"/>
            <geom name="foot" size=".06"/>
            <site name="sole" pos="0 .01 -.05" euler="10 0 0"/> <site name="ankle"/>
          </body>
        </body>
      </body>
    </body>
    <body pos="1 0 1">
      <joint type="slide" axis="1 0 0" range="-.5 .5"/>
      <geom name="mark" size=".02" pos=".1 0 0" contype="0" conaffinity="0"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hip" gear="20" ctrllimited="true" ctrlrange="-1 1"/>
    <position joint="knee" kp="30" kv="1" ctrllimited="true" ctrlrange="-1 1"
              forcelimited="true" forcerange="-4 3"/>
    <general joint="toe" gainprm="3" biastype="affine" biasprm=".5 -2 -.1" gear="2"/>
  </actuator>
</mujoco>)";

ModelPtr Creature(const char* options = "") {
  std::string xml = kCreature;
  return LoadXml(xml.replace(xml.find("%s"), 2, options));
}

const char* const kFields[] = {
    "qpos0",
    "qpos_spring",
    "body_pos",
    "body_quat",
    "body_ipos",
    "body_mass",
    "body_subtreemass",
    "body_inertia",
    "body_invweight0",
    "jnt_pos",
    "jnt_axis",
    "jnt_stiffness",
    "jnt_range",
    "jnt_margin",
    "jnt_actfrcrange",
    "jnt_solref",
    "jnt_solimp",
    "dof_armature",
    "dof_damping",
    "dof_frictionloss",
    "dof_solref",
    "dof_solimp",
    "dof_invweight0",
    "dof_M0",
    "body_iquat",
    "body_margin",
    "bvh_aabb",
    "geom_size",
    "geom_margin",
    "geom_rbound",
    "geom_aabb",
    "geom_pos",
    "geom_quat",
    "geom_friction",
    "geom_solref",
    "geom_solimp",
    "site_pos",
    "site_quat",
    "actuator_gear",
    "actuator_gainprm",
    "actuator_biasprm",
    "actuator_ctrlrange",
    "actuator_forcerange",
    "opt.gravity",
    "opt.density",
    "opt.viscosity",
};

class EveryField : public testing::TestWithParam<const char*> {};

TEST_P(EveryField, EqualsMjStepBitForBit) {
  const ModelPtr m = Creature();
  ClosedLoop loop(*m, 3, {GetParam()});
  loop.Run(4'000);
  ExpectEqual(loop, 0.2);
  EXPECT_GT(loop.num_rows(), 100) << "the model tries no constraints";
}

INSTANTIATE_TEST_SUITE_P(Fields, EveryField, testing::ValuesIn(kFields), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

class Options : public testing::TestWithParam<const char*> {};

TEST_P(Options, TakeAllFieldsAtOnce) {
  const ModelPtr m = Creature(GetParam());
  ClosedLoop loop(*m, 3, {std::begin(kFields), std::end(kFields)});
  loop.Run(4'000);
  ExpectEqual(loop, 0.3);  // touches that MuJoCo may not see
}

INSTANTIATE_TEST_SUITE_P(All, Options,
                         testing::Values("", "integrator='RK4'", "iterations='3'", "impratio='5'"));

// ---- shapes, trees and explicit pairs -----------------------------------------------------------

constexpr char kHeap[] = R"(
<mujoco>
  <option timestep=".005"/>
  <asset><mesh name="rock" vertex="-.1 -.1 -.1 .2 0 0 0 .2 0 0 0 .2 .15 .1 .1"/></asset>
  <default><geom friction=".8" solref=".03 .9" solimp=".85 .95 .002"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body pos=".1 0 .05" euler="0 20 0"><geom name="ramp" type="box" size=".3 .2 .1"/></body>
    <body pos="0 0 .4"><freejoint/><geom name="box" type="box" size=".1 .08 .06"/>
      <body pos=".2 0 0"><joint axis="0 1 0" frictionloss=".3" damping=".1"/>
        <geom name="rod" type="cylinder" size=".05 .1" euler="90 20 0"/></body></body>
    <body pos=".1 0 .6"><freejoint/><geom type="ellipsoid" size=".1 .08 .06"/></body>
    <body pos="-.1 .1 .6"><freejoint/><geom type="mesh" mesh="rock"/></body>
    <body pos="-.2 0 .3"><joint type="slide" axis="0 0 1" frictionloss=".5"/>
      <joint type="slide" axis="1 0 0" range="-.02 .02" limited="true"/>
      <geom name="ball" size=".1"/></body>
  </worldbody>
  <contact>
    <pair geom1="box" geom2="floor" friction=".5 .5 .1 .1 .1" solref=".05 1" margin=".02"/>
    <pair geom1="rod" geom2="ball" condim="1" gap=".01" margin=".02"/>
  </contact>
</mujoco>)";

std::vector<std::string> FieldsWithout(const std::string& left_out) {
  std::vector<std::string> fields(std::begin(kFields), std::end(kFields));
  std::erase(fields, left_out);
  return fields;
}

class Heap : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Heap, EqualsMjStepBitForBit) {
  const ModelPtr m = LoadXml(kHeap);
  ClosedLoop loop(*m, 3, GetParam());
  loop.Run(4'000);
  ExpectEqual(loop, 0.2);
  EXPECT_GT(loop.num_rows(), 1'000) << "the model tries no contacts";
}

INSTANTIATE_TEST_SUITE_P(
    Fields, Heap,
    testing::Values(std::vector<std::string>{},  // the model's
                    std::vector<std::string>{"body_pos", "body_quat"},
                    std::vector<std::string>{"body_ipos", "body_mass", "body_inertia"},
                    std::vector<std::string>{"geom_friction", "geom_solref", "geom_solimp"},
                    std::vector<std::string>{"body_invweight0", "dof_frictionloss", "dof_solimp"},
                    FieldsWithout("body_iquat")));  // which the rock turns with

TEST(ShapeFields, WhatShapesAreMadeOfIsRefused) {
  const ModelPtr m = LoadXml(kHeap);
  for (const char* field : {"geom_gap", "mesh_pos", "pair_friction"}) {
    EXPECT_EQ(Plan::Make(*m, BestKernels(), {field}).refusal,
              std::string("lanes do not do per-environment ") + field);
  }
}

// ---- what is left to mj_step --------------------------------------------------------------------

// Environment 2 of 8 has numbers of another kind; the others' steps are lanes' all the same.
unsigned LeftToMujoco(const char* field, void (*change)(std::vector<double>&)) {
  const ModelPtr m = Creature();
  const DataPtr d = MakeData(*m);
  RowSet rows(*m, 8);
  LaneStepper lanes(MakePlan(*m, Widths()[0], {field}));
  OwnNumbers numbers(*m, lanes.plan(), 8);
  for (int e = 0; e < 8; ++e) mj_getState(m.get(), d.get(), rows.row(e), mjSTATE_INTEGRATION);
  change(numbers.values(2, 0));
  unsigned left = 0;
  for (int first = 0; first < 8; first += lanes.width()) {
    double* const* group = rows.from(first);
    left |= lanes.Step(group, group, lanes.width(), 1, true, numbers.from(first)) << first;
  }
  return left;
}

TEST(OtherKinds, AreLeftToMjStep) {
  const auto zero = [](std::vector<double>& x) { std::fill(x.begin(), x.end(), 0); };
  EXPECT_EQ(LeftToMujoco("dof_damping", zero), 1u << 2);
  EXPECT_EQ(LeftToMujoco("dof_frictionloss", zero), 1u << 2);
  EXPECT_EQ(LeftToMujoco("opt.density", zero), 0) << "a viscous fluid is left";
  EXPECT_EQ(LeftToMujoco("body_subtreemass", zero), 1u << 2);
  EXPECT_EQ(LeftToMujoco("body_mass", zero), 1u << 2) << "not in the fluid any more";
  EXPECT_EQ(LeftToMujoco("geom_solref", [](std::vector<double>& x) { x[0] = -3000; }), 1u << 2);
  EXPECT_EQ(LeftToMujoco("geom_size", [](std::vector<double>& x) { x[7] = 0; }), 1u << 2)
      << "a capsule that is a sphere";
}

TEST(OtherFields, AreRefused) {
  EXPECT_EQ(Plan::Make(*Creature(), BestKernels(), {"body_mass", "geom_gap"}).refusal,
            "lanes do not do per-environment geom_gap");
}

}  // namespace
}  // namespace pyfastenv::lanes
