// What is called apart, against MuJoCo's collision functions.
#include "lanes/separation.h"

#include <gtest/gtest.h>

#include <random>

#include "support.h"

namespace pyfastenv::lanes {
namespace {

constexpr char kShapes[] = R"(
<mujoco>
  <default><geom margin=".01"/></default>
  <asset>
    <mesh name="rock" vertex="-.1 -.1 -.1 .2 0 0 0 .2 0 0 0 .2 .15 .1 .1"/>
    <mesh name="ball" builtin="sphere" params="2" scale=".15 .1 .12"/>
  </asset>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body><freejoint/><geom type="mesh" mesh="rock"/></body>
    <body><freejoint/><geom type="mesh" mesh="ball"/></body>
    <body><freejoint/><geom type="ellipsoid" size=".1 .05 .15"/></body>
    <body><freejoint/><geom type="cylinder" size=".1 .1"/></body>
    <body><freejoint/><geom type="capsule" size=".05 .1"/></body>
    <body><freejoint/><geom type="box" size=".1 .05 .15"/></body>
    <body><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>)";

struct Counts {
  int certain = 0, apart = 0, wrong = 0;
};

// Geoms in random places, which move a little between two questions.
Counts AskAboutRandomPlaces(const mjModel& m) {
  const auto plan = MakePlan(m, 1);
  const Tables& t = plan->tables();
  Separation separation(m, t);
  const DataPtr d = MakeData(m);
  std::mt19937_64 random(7);
  std::normal_distribution<double> draw;
  Counts counts;
  for (int state = 0; state < 2'000; ++state) {
    for (int i = 0; i < m.nq; ++i) {
      d->qpos[i] =
          state % 10 == 0 ? (i % 7 < 3 ? .2 : 1) * draw(random) : d->qpos[i] + 1e-3 * draw(random);
    }
    mj_kinematics(&m, d.get());
    for (int k = 0; k < t.num_pairs; ++k) {
      const int g1 = t.pair[k].geom1, g2 = t.pair[k].geom2;
      if (t.pair[k].kind != PairKind::kOther) continue;
      mjPreContact contacts[kMaxPointsOfPair];
      const int found = mjCOLLISIONFUNC[m.geom_type[g1]][m.geom_type[g2]](&m, d.get(), contacts, g1,
                                                                          g2, t.pair[k].reach);
      const bool certain = separation.IsCertain(k, d->geom_xpos + 3 * g1, d->geom_xmat + 9 * g1,
                                                d->geom_xpos + 3 * g2, d->geom_xmat + 9 * g2);
      if (!certain) separation.Note(k, found);
      counts.certain += certain;
      counts.apart += found == 0;
      counts.wrong += certain && found != 0;
    }
  }
  mj_collision(&m, d.get());  // which takes back the buffer that the functions have worked in
  return counts;
}

TEST(Separation, IsNoneWhereMuJoCoFindsTouches) {
  const ModelPtr m = LoadXml(kShapes);
  const Counts counts = AskAboutRandomPlaces(*m);
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_GT(counts.certain, .5 * counts.apart) << counts.apart;
}

// A corner that has moved outwards since the hull was made, which its neighbours do not lead to.
TEST(Separation, OfAHullThatIsNoneAnyMoreIsNeverCertain) {
  const ModelPtr m = LoadXml(kShapes);
  const int ball = mj_name2id(m.get(), mjOBJ_MESH, "ball");
  float* vertex = m->mesh_vert + 3 * m->mesh_vertadr[ball];
  const Counts before = AskAboutRandomPlaces(*m);
  for (int i = 0; i < 3 * m->mesh_vertnum[ball]; i += 2) vertex[i] *= -.3f;
  const Counts after = AskAboutRandomPlaces(*m);
  EXPECT_EQ(after.wrong, 0);
  EXPECT_LT(after.certain, before.certain);
}

}  // namespace
}  // namespace pyfastenv::lanes
