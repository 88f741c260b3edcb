// Contacts with height fields, against MuJoCo's collision function.
#include "lanes/height_field.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "support.h"

namespace pyfastenv::lanes {
namespace {

constexpr char kFields[] = R"(
<mujoco>
  <compiler boundmass="1e-3" boundinertia="1e-6"/>
  <asset>
    <hfield name="rough" nrow="12" ncol="9" size="1 .8 .1 .3"/>
    <hfield name="fine" nrow="60" ncol="80" size="1 1 .03 1"/>
    <hfield name="coarse" nrow="2" ncol="2" size="1 1 .5 .1"/>
    <hfield name="steep" nrow="7" ncol="30" size="1 .2 2 .01"/>
    <hfield name="steps" nrow="20" ncol="20" size=".5 .5 .1 .2"/>
    <hfield name="flat" nrow="20" ncol="20" size=".5 .5 .1 .2"/>
    <hfield name="tiny" nrow="40" ncol="40" size=".01 .01 .001 .001"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="rough"/>
    <geom type="hfield" hfield="fine" pos="3 0 1"/>
    <geom type="hfield" hfield="coarse" pos="0 3 0" euler="10 20 30"/>
    <geom type="hfield" hfield="steep" pos="-3 0 .2"/>
    <geom type="hfield" hfield="steps" pos="-3 5 0"/>
    <geom type="hfield" hfield="flat" pos="3 5 0" euler="0 0 45"/>
    <geom type="hfield" hfield="tiny" pos="3 9 0"/>
    <body><freejoint/><geom size=".023"/></body>
    <body><freejoint/><geom size=".3"/></body>
    <body><freejoint/><geom size="1e-4" mass="1"/></body>
    <body><freejoint/><geom type="capsule" size=".02 .1"/></body>
    <body><freejoint/><geom type="capsule" size=".1 .02"/></body>
    <body><freejoint/><geom type="capsule" size=".003 .4"/></body>
  </worldbody>
</mujoco>)";

struct Counts {
  int touching = 0, left = 0, all = 0;
};

ModelPtr Fields(std::mt19937_64& random) {
  ModelPtr m = LoadXml(kFields);
  std::uniform_real_distribution<float> draw;
  for (int id = 0; id < m->nhfield; ++id) {
    const std::string name = mj_id2name(m.get(), mjOBJ_HFIELD, id);
    for (int i = 0; i < m->hfield_nrow[id] * m->hfield_ncol[id]; ++i) {
      float& height = m->hfield_data[m->hfield_adr[id] + i];
      height = name == "flat" ? .5f : draw(random);
      if (name == "steps") height = height < .7f ? 0 : 1;
    }
  }
  return m;
}

// A geom near the surface of a field; one in eight is upright or lies along it.
void Place(const mjModel& m, mjData& d, int field, int geom, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> draw(-1.1, 1.1), share;
  const int id = m.geom_dataid[field];
  const double* size = m.hfield_size + ptrdiff_t{4} * id;
  double local[3] = {size[0] * draw(random), size[1] * draw(random), 0};
  const double reach = m.geom_rbound[geom] + size[2];
  local[2] = size[2] / 2 + reach * (.7 * share(random) - .2);
  double quat[4] = {1, 0, 0, 0};
  switch (random() % 16) {
    case 0:
      break;
    case 1:
      quat[random() % 3 + 1] = 1;
      break;
    case 2:  // above a corner of the grid
      for (int i = 0; i < 2; ++i) {
        const double step = 2 * size[i] / ((i == 0 ? m.hfield_ncol : m.hfield_nrow)[id] - 1);
        local[i] = std::floor(local[i] / step) * step - size[i] * (i == 1);
      }
      break;
    default:
      for (double& q : quat) q = normal(random);
  }
  mju_normalize4(quat);
  mju_quat2Mat(d.geom_xmat + 9 * geom, quat);
  double* pos = d.geom_xpos + 3 * geom;
  mju_mulMatVec3(pos, d.geom_xmat + 9 * field, local);
  mju_addTo3(pos, d.geom_xpos + 3 * field);
}

class HeightField : public testing::TestWithParam<double> {};

TEST_P(HeightField, HasMuJoCosContacts) {
  const double margin = GetParam();
  std::mt19937_64 random(5);
  const ModelPtr m = Fields(random);
  const DataPtr d = MakeData(*m);
  mj_kinematics(m.get(), d.get());
  for (int field = 0; field < m->nhfield; ++field) {
    Counts counts;
    for (int k = 0; k < 3'000; ++k) {
      const int geom = m->nhfield + k % (m->ngeom - m->nhfield);
      Place(*m, *d, field, geom, random);
      mjPreContact ours[kMaxPointsOfPair], theirs[kMaxPointsOfPair];
      const int count =
          CollideHeightField(*m, field, d->geom_xpos + 3 * field, d->geom_xmat + 9 * field, geom,
                             d->geom_xpos + 3 * geom, d->geom_xmat + 9 * geom, margin, ours);
      const int expected = mjCOLLISIONFUNC[mjGEOM_HFIELD][m->geom_type[geom]](
          m.get(), d.get(), theirs, field, geom, margin);
      ++counts.all;
      counts.left += count < 0;
      counts.touching += expected > 0;
      if (count < 0) continue;
      ASSERT_EQ(count, expected) << "field " << field << ", geom " << geom << ", " << k;
      for (int c = 0; c < count; ++c) {
        ASSERT_EQ(std::memcmp(ours + c, theirs + c, sizeof(mjPreContact)), 0)
            << "field " << field << ", geom " << geom << ", " << k << ": " << ours[c].dist << ' '
            << theirs[c].dist;
      }
    }
    EXPECT_GT(counts.touching, counts.all / 20) << field;
    EXPECT_LT(counts.left, counts.touching) << field;
  }
  mj_collision(m.get(), d.get());  // which takes back the buffer that the function has worked in
}

INSTANTIATE_TEST_SUITE_P(Margins, HeightField, testing::Values(0, .01, .2, -.002));

}  // namespace
}  // namespace pyfastenv::lanes
