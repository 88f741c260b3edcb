// A muscle's forces and how it follows its control: mju_muscleGain, mju_muscleBias,
// mju_muscleDynamics.
//
// Parameters are mjModel's: range of operation (2), peak force (negative: scale ÷ acc0), scale,
// shortest and longest length, fastest speed, passive and lengthening peaks.
#pragma once

#include "lanes/stages/lane.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// The active force at full activation; muscles pull, so it is negative.
Lane MuscleGain(const Muscle& muscle, Lane length, Lane velocity, const Lane* parameters);
/// Its derivative by velocity: mjd_muscleGain_vel.
Lane MuscleGainByVelocity(const Muscle& muscle, Lane length, Lane velocity, const Lane* parameters);
/// The passive force.
Lane MuscleBias(const Muscle& muscle, Lane length, const Lane* parameters);
/// How fast the activation changes.
Lane MuscleActivationRate(const Muscle& muscle, Lane ctrl, Lane act);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
