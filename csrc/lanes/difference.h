// Where lanes and mj_step differ, in words that can be reported.
//
// Whoever finds a difference, while a plan is tried or while it is used, says it in this sentence:
// the step, the first number that differs with both values to the bit, what ran and where, so that
// the report of one who met it is enough to begin with.
#pragma once

#include <mujoco/mujoco.h>

#include <optional>
#include <string>

#include "lanes/lane_stepper.h"

namespace pyfastenv::lanes {

/// The first number whose bits differ between two arrays: rows of mjSTATE_INTEGRATION, or a field
/// of mjData.
struct Difference {
  int index;
  double lanes, mujoco;
};

/// Compares `size` numbers. A zero's sign and a NaN's payload count.
std::optional<Difference> FindDifference(const double* lanes, const double* mujoco, int size);

/// Compares a field of one environment, as LaneStepper::Read has it, with mjData's after mj_step.
std::optional<Difference> FindDifference(const LaneStepper& lanes, int lane, Field field,
                                         const mjData& mujoco);

/// Name of a number of a row of mjSTATE_INTEGRATION: "qpos[3] of joint 'hip'", "time".
std::string NameOfNumber(const mjModel& m, int index);

/// Name of a number of sensordata: "sensordata[3] of sensor 'imu'".
std::string NameOfSensordata(const mjModel& m, int index);

/// The sentence. `step` says which ("step 3 of a rollout"); `width`: the plan's lanes; `name`: of
/// the number, if it is none of a row.
std::string Describe(const mjModel& m, int width, const std::string& step,
                     const Difference& difference, const std::string& name = {});

}  // namespace pyfastenv::lanes
