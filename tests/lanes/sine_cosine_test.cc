// Sine and cosine in lanes against the C library, through rows: hinges and free joints at angles of
// all sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support.h"

namespace pyfastenv::lanes {
namespace {

// A hinge's orientation is cosine and sine of half its angle.
constexpr char kHinge[] = R"(
<mujoco><worldbody><body>
  <joint type="hinge" axis="0 1 0" limited="false"/><geom size="0.1"/>
</body></worldbody></mujoco>)";

TEST(SineCosine, HaveTheLibrarysBits) {
  constexpr int kAngles = 400000;
  const ModelPtr m = LoadXml(kHinge);
  const DataPtr d = MakeData(*m);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (const int width : Widths()) {
    LaneStepper lanes(MakePlan(*m, width));
    const int qpos = lanes.plan().tables().row.qpos;
    RowSet rows(*m, width);
    for (int l = 0; l < width; ++l) mj_getState(m.get(), d.get(), rows.row(l), mjSTATE_INTEGRATION);
    for (int k = 0; k < kAngles; k += width) {
      for (int l = 0; l < width; ++l) {
        const double u = uniform(random);
        const double magnitudes[] = {1.7 * u, 0.26 * u, std::exp(-40 * u), 100 * u, 0.0};
        rows.row(l)[qpos] = (u < 0.5 ? -1 : 1) * magnitudes[random() % 5];
      }
      ASSERT_EQ(lanes.Forward(rows.from(0), width), 0U);
      for (int l = 0; l < width; ++l) {
        double xquat[8];
        lanes.Read(Field::xquat, l, xquat);
        const double half = rows.row(l)[qpos] * 0.5;
        ASSERT_EQ(xquat[4], std::cos(half)) << width << " lanes, half angle " << half;
        ASSERT_EQ(xquat[6], std::sin(half)) << width << " lanes, half angle " << half;
      }
    }
  }
}

}  // namespace
}  // namespace pyfastenv::lanes
