// What the tests compare: lane_tests [--substeps=N] [--models=DIRECTORY] [gtest's arguments].
#pragma once

#include <cstdint>
#include <string>

namespace pyfastenv::lanes {

struct Settings {
  int64_t stage_states = 10'000;  // per robot, stage by stage
  int64_t substeps = 100'000;     // per robot, in closed loops
  std::string models;             // a directory of others' models; empty: none
};

Settings& settings();

}  // namespace pyfastenv::lanes
