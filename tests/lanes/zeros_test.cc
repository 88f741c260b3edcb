// The signs of zeros: programs leave out operations with exact zeros, and rows must not show it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support.h"

namespace pyfastenv::lanes {
namespace {

class RestingRobot : public testing::TestWithParam<Robot> {
 protected:
  // Steps from the default pose without controls, by lanes and by mj_step.
  void Compare(double zero) {
    constexpr int kSteps = 40;
    const ModelPtr m = LoadRobot(GetParam());
    const DataPtr d = MakeData(*m);
    for (const int width : Widths()) {
      LaneStepper lanes(MakePlan(*m, width));
      mj_resetData(m.get(), d.get());
      std::fill_n(d->qvel, m->nv, zero);
      std::fill_n(d->qacc_warmstart, m->nv, zero);
      std::fill_n(d->ctrl, m->nu, zero);
      RowSet rows(*m, 2);
      mj_getState(m.get(), d.get(), rows.row(0), mjSTATE_INTEGRATION);
      for (int step = 0; step < kSteps; ++step) {
        // a warm start with negative zeros is left to MuJoCo
        const double* warm = rows.row(0) + lanes.plan().tables().row.warmstart;
        const bool left =
            std::any_of(warm, warm + m->nv, [](double x) { return x == 0 && std::signbit(x); });
        const unsigned redo = lanes.Step(rows.from(0), rows.from(0), 1, 1, /*keep_fields=*/false);
        mj_step(m.get(), d.get());
        mj_getState(m.get(), d.get(), rows.row(1), mjSTATE_INTEGRATION);
        ASSERT_EQ(redo, left ? 1U : 0U) << width << " lanes, step " << step;
        if (left) std::copy_n(rows.row(1), rows.size(), rows.row(0));
        ASSERT_EQ(std::memcmp(rows.row(0), rows.row(1), rows.size() * sizeof(double)), 0)
            << width << " lanes, step " << step;
      }
    }
  }
};

TEST_P(RestingRobot, KeepsZeros) { Compare(0.0); }
TEST_P(RestingRobot, KeepsNegativeZeros) { Compare(-0.0); }

INSTANTIATE_TEST_SUITE_P(Robots, RestingRobot, testing::ValuesIn(Robots()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pyfastenv::lanes
