// Where lanes and mj_step differ, in words that can be reported.
//
// Whoever finds a difference, while a plan is tried or while it is used, says it in this sentence:
// the step, the first number that differs with both values to the bit, what ran and where, so that
// the report of one who met it is enough to begin with.
#pragma once

#include <mujoco/mujoco.h>

#include <optional>
#include <string>

namespace pyfastenv::lanes {

/// The first number whose bits differ between two rows of mjSTATE_INTEGRATION.
struct Difference {
  int index;  // in the row
  double lanes, mujoco;
};

/// Compares the first `size` numbers of two rows. A zero's sign and a NaN's payload count.
std::optional<Difference> FindDifference(const double* lanes, const double* mujoco, int size);

/// Name of a number of a row of mjSTATE_INTEGRATION: "qpos[3] of joint 'hip'", "time".
std::string NameOfNumber(const mjModel& m, int index);

/// The sentence. `step` says which ("step 3 from the keyframe 'home'"); `width`: the plan's lanes.
std::string Describe(const mjModel& m, int width, const std::string& step,
                     const Difference& difference);

}  // namespace pyfastenv::lanes
