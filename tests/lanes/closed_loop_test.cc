// Ten of gymnasium's robots in closed loops: 10^5 substeps each, or --substeps=N.
#include "closed_loop.h"

#include <gtest/gtest.h>

#include "settings.h"

namespace pyfastenv::lanes {
namespace {

class RobotLoop : public testing::TestWithParam<Robot> {};

TEST_P(RobotLoop, EqualsMjStepBitForBit) {
  const ModelPtr m = LoadRobot(GetParam());
  ClosedLoop loop(*m, GetParam().frame_skip);
  loop.Run(settings().substeps);
  ExpectEqual(loop, 0.02);
  for (const auto& track : loop.tracks()) {
    std::printf("    %d lanes: %lld substeps, %lld of %lld environment steps left to mj_step\n",
                track->lanes.width(),
                static_cast<long long>(track->environment_steps * GetParam().frame_skip),
                static_cast<long long>(track->left_to_mujoco),
                static_cast<long long>(track->environment_steps));
  }
}

INSTANTIATE_TEST_SUITE_P(Robots, RobotLoop, testing::ValuesIn(Robots()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pyfastenv::lanes
