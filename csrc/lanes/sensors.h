// Sensors of models that run in lanes.
//
// They change no physics, so lanes leave them out. Who reads them lets MuJoCo's own functions
// compute them from the fields that lanes have computed, bit for bit the same.
#pragma once

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "lanes/lane_stepper.h"

namespace pyfastenv::lanes {

/// Which of a model's sensors. Those of accelerations and forces are the last substep's even for
/// who has all others computed anew afterwards (mj_step1); the others are kOfMotion.
enum class Sensors { kNone, kOfMotion, kOfAcceleration, kAll };

/// Whether the model has any of these.
bool HasSensors(const mjModel& m, Sensors which);
/// Whether any of these needs lengths or velocities of tendons.
bool SensesTendons(const mjModel& m, Sensors which);
/// Whether lanes' cfrc_ext lacks forces: those of spatial tendons.
bool LacksBodyForces(const mjModel& m);
/// One of these that cannot be had so, in words; empty if there is none.
std::string UnsupportedSensor(const mjModel& m, Sensors which);

/// Writes what these say into d.sensordata of one environment, as it is after the last Step, which
/// has kept fields; kOfMotion: after Refresh, and `d` has the new state's time, qpos and qvel.
/// Otherwise it overwrites these, and in any case whatever else sensors are computed from. Plain C
/// calls of the engine are among it (mujoco/error_trap.h).
void ComputeSensors(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d, Sensors which);

/// Writes the quaternions of inertias, geoms and sites as mj_kinematics does, from d.xquat.
void TurnFrames(const mjModel& m, mjData& d);

/// One of the model's sensors, in words, whose data a plan with sensors (Sensing) cannot give, if
/// environments have their own numbers of `fields`; empty if it can give all.
std::string UnsupportedSensordata(const mjModel& m, const std::vector<std::string>& fields = {});

/// Writes one environment's sensordata as mj_step leaves it, after a Step with `sensors` of such a
/// plan. `m`: the plan's model, or one that differs in numbers alone, as the environment has it.
/// `d` is used where MuJoCo's functions have to compute sensors: all but its inputs is overwritten.
/// Returns false if MuJoCo raised an error: then mj_step must do the step.
bool WriteSensordata(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d, double* out);

}  // namespace pyfastenv::lanes
