// Contacts of models that run in lanes, as mjData has them, for who reads them there.
#pragma once

#include <mujoco/mujoco.h>

#include <string>

#include "lanes/lane_stepper.h"

namespace pyfastenv::lanes {

/// Why the model's list of contacts cannot be had so; empty if it can.
std::string UnsupportedContacts(const mjModel& m);

/// Writes the last evaluation's contacts of one environment into d.contact and d.ncon, in the
/// arena, of which they then are all that is taken. `m`: with the environment's fields.
void ListContacts(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d);

/// Writes the last evaluation's contacts of one environment into d.contact and d.ncon, and its
/// rows' forces into d.efc_force and d.nefc, which mj_contactForce asks for. Until the engine finds
/// contacts anew. Contacts that are further apart than their margin (see geom_gap) are left out.
/// `m`: with the environment's fields.
void WriteContacts(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d);

}  // namespace pyfastenv::lanes
