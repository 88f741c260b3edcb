// Sensors of models that run in lanes.
//
// They change no physics, so lanes leave them out. Who reads them lets MuJoCo's own functions
// compute them from the fields that lanes have computed, bit for bit the same.
#pragma once

#include <mujoco/mujoco.h>

#include <string>

#include "lanes/lane_stepper.h"

namespace pyfastenv::lanes {

/// Which of a model's sensors. Those of accelerations and forces are the last substep's even for
/// who has all others computed anew afterwards (mj_step1); the others are kOfMotion.
enum class Sensors { kNone, kOfMotion, kOfAcceleration, kAll };

/// Whether the model has any of these.
bool HasSensors(const mjModel& m, Sensors which);
/// Whether any of these needs lengths or velocities of tendons.
bool SensesTendons(const mjModel& m, Sensors which);
/// One of these that cannot be had so, in words; empty if there is none.
std::string UnsupportedSensor(const mjModel& m, Sensors which);

/// Writes what these say into d.sensordata of one environment, as it is after the last Step, which
/// has kept fields; kOfMotion: after Refresh, and `d` has the new state's time, qpos and qvel.
/// Otherwise it overwrites these, and in any case whatever else sensors are computed from. Plain C
/// calls of the engine are among it (mujoco/error_trap.h).
void ComputeSensors(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d, Sensors which);

}  // namespace pyfastenv::lanes
