// How much the tests compare: lane_tests [--substeps=N] [gtest's arguments].
#pragma once

#include <cstdint>

namespace pyfastenv::lanes {

struct Settings {
  int64_t stage_states = 10'000;  // per robot, stage by stage
  int64_t substeps = 100'000;     // per robot, in closed loops
};

Settings& settings();

}  // namespace pyfastenv::lanes
