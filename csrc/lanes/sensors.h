// Sensors of models that run in lanes.
//
// They change no physics, so lanes leave them out. Who reads them lets MuJoCo's own functions
// compute them from the fields that lanes have computed, bit for bit the same.
#pragma once

#include <mujoco/mujoco.h>

#include <string>

#include "lanes/lane_stepper.h"

namespace pyfastenv::lanes {

/// The model's sensor that cannot be had so, in words; empty if there is none.
std::string UnsupportedSensor(const mjModel& m);

/// Writes d.sensordata of one environment, as it is after the last Step, which has kept fields. Of
/// `d` it overwrites time, qpos, qvel and whatever else sensors are computed from. Plain C calls of
/// the engine are among it (mujoco/error_trap.h).
void ComputeSensors(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d);

}  // namespace pyfastenv::lanes
