// Lists of contacts and their forces, against mj_step's.
#include "lanes/contacts.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lanes/own_numbers.h"
#include "support.h"

namespace pyfastenv::lanes {
namespace {

constexpr char kXml[] = R"(
<mujoco>
  <option timestep=".004"/>
  <default><geom friction=".8 .01 .002" solref=".03 .9" solimp=".85 .95 .002"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction=".3" margin=".01"/>
    <body pos="0 0 .3"><freejoint/><geom name="box" type="box" size=".1 .08 .06"/>
      <body pos=".2 0 0"><joint axis="0 1 0" frictionloss=".3" range="-20 20" limited="true"/>
        <geom name="rod" type="capsule" size=".05 .1" euler="90 20 0"/></body></body>
    <body pos=".05 0 .6"><freejoint/><geom name="ball" size=".08" condim="1" priority="1"/></body>
    <body pos=".4 .1 .2"><freejoint/><geom size=".06" solmix="3" friction="1.5"/></body>
  </worldbody>
  <contact>
    <pair geom1="rod" geom2="floor" friction=".5 .5 .1 .1 .1" solref=".05 1" margin=".02"/>
  </contact>
</mujoco>)";

ModelPtr Load(const char* options = "") {
  std::string xml = kXml;
  return LoadXml(xml.insert(xml.find("timestep"), options));
}

// All that MuJoCo says of a contact, in words if it is not the same.
std::string Difference(const mjContact& a, const mjContact& b) {
  const auto same = [](const auto& x, const auto& y) {
    return std::memcmp(&x, &y, sizeof(x)) == 0;
  };
#define PYFASTENV_COMPARE(field) \
  if (!same(a.field, b.field)) return #field;
  PYFASTENV_COMPARE(dist)
  PYFASTENV_COMPARE(pos)
  PYFASTENV_COMPARE(frame)
  PYFASTENV_COMPARE(includemargin)
  PYFASTENV_COMPARE(friction)
  PYFASTENV_COMPARE(solref)
  PYFASTENV_COMPARE(solreffriction)
  PYFASTENV_COMPARE(solimp)
  PYFASTENV_COMPARE(dim)
  PYFASTENV_COMPARE(geom1)
  PYFASTENV_COMPARE(geom2)
  PYFASTENV_COMPARE(geom)
  PYFASTENV_COMPARE(flex)
  PYFASTENV_COMPARE(elem)
  PYFASTENV_COMPARE(vert)
  PYFASTENV_COMPARE(exclude)
  PYFASTENV_COMPARE(efc_address)
#undef PYFASTENV_COMPARE
  return {};
}

class ContactBits : public testing::TestWithParam<const char*> {};

TEST_P(ContactBits, AreMjSteps) {
  const ModelPtr m = Load(GetParam());
  ASSERT_EQ(UnsupportedContacts(*m), "");
  const DataPtr d = MakeData(*m), other = MakeData(*m);
  LaneStepper lanes(MakePlan(*m, Widths()[0], {"geom_friction", "geom_solref"}));
  const int width = lanes.width();
  RowSet rows(*m, width);
  OwnNumbers numbers(*m, lanes.plan(), width);
  Randomizer random(*m, 3);
  std::mt19937_64 number_random(5);
  for (int e = 0; e < width; ++e) {
    random.Reset(*d, 0.2);
    mj_getState(m.get(), d.get(), rows.row(e), mjSTATE_INTEGRATION);
    numbers.Draw(e, 0.2, number_random);
  }
  int contacts = 0;
  for (int step = 0; step < 300; ++step) {
    const RowSet& before = rows;
    std::vector<DataPtr> theirs;
    for (int e = 0; e < width; ++e) {
      const mjModel own = numbers.Of(e);
      theirs.push_back(MakeData(*m));
      mj_setState(&own, theirs.back().get(), before.row(e), mjSTATE_INTEGRATION);
      mj_step(&own, theirs.back().get());
    }
    const unsigned redo =
        lanes.Step(rows.from(0), rows.from(0), width, 1, step % 2 == 0, numbers.from(0));
    for (int e = 0; e < width; ++e) {
      const mjModel own = numbers.Of(e);
      const mjData& expected = *theirs[static_cast<size_t>(e)];
      mj_getState(&own, &expected, rows.row(e), mjSTATE_INTEGRATION);
      if ((redo >> e & 1) != 0) continue;
      WriteContacts(lanes, e, own, *other);
      ASSERT_EQ(other->ncon, expected.ncon);
      ASSERT_EQ(other->nefc, expected.nefc);
      contacts += other->ncon;
      for (int k = 0; k < other->ncon; ++k) {
        ASSERT_EQ(Difference(other->contact[k], expected.contact[k]), "")
            << "contact " << k << " in step " << step;
        mjtNum ours[6], force[6];
        mj_contactForce(&own, other.get(), k, ours);
        mj_contactForce(&own, &expected, k, force);
        ASSERT_EQ(std::memcmp(ours, force, sizeof(force)), 0) << "force of contact " << k;
      }
    }
  }
  EXPECT_GT(contacts, 1'000);
}

INSTANTIATE_TEST_SUITE_P(Options, ContactBits,
                         testing::Values("", "integrator='RK4' ", "impratio='5' "));

TEST(Contacts, WithGapsAreRefused) {
  const ModelPtr m = Load();
  m->geom_gap[1] = 0.01;
  EXPECT_EQ(UnsupportedContacts(*m), "contacts of geoms with gaps");
}

// What lies outside of the box that the compiler has put around a geom, MuJoCo does not see: it is
// asked where lanes are not sure, and only what it does not list is mj_step's.
TEST(Contacts, ThatMuJoCoMayNotSee) {
  const ModelPtr m = LoadXml(
      "<mujoco><worldbody><geom type='plane' size='5 5 1'/><body><freejoint/>"
      "<geom size='.1'/><geom size='.05' pos='.2 0 .1'/></body></worldbody></mujoco>");
  m->geom_size[3] = .12;
  m->geom_rbound[1] = .3;
  const DataPtr d = MakeData(*m);
  for (const int width : Widths()) {
    LaneStepper lanes(MakePlan(*m, width));
    RowSet rows(*m, 2);
    for (const double height : {.119, .1001, .0999, .08}) {
      mj_resetData(m.get(), d.get());
      d->qpos[2] = height;
      mj_getState(m.get(), d.get(), rows.row(0), mjSTATE_INTEGRATION);
      mj_step(m.get(), d.get());
      ASSERT_EQ(d->ncon, height < .1 ? 1 : 0);
      const unsigned redo = lanes.Step(rows.from(0), rows.from(0), 1, 1, false);
      EXPECT_EQ(redo, d->ncon == 0 ? 1u : 0u) << width << " lanes, " << height;
      if (redo != 0) continue;
      mj_getState(m.get(), d.get(), rows.row(1), mjSTATE_INTEGRATION);
      EXPECT_EQ(std::memcmp(rows.row(0), rows.row(1), rows.size() * sizeof(double)), 0);
    }
  }
}

}  // namespace
}  // namespace pyfastenv::lanes
