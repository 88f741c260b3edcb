// Which models lanes do.
#pragma once

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "lanes/contact_source.h"

namespace pyfastenv::lanes {

/// What the model has that lanes do not do; empty if nothing.
std::string UnsupportedFeature(const mjModel& m);
/// Which of these fields of mjModel no environment can have its own of, in lanes; empty if none.
std::string UnsupportedField(const mjModel& m, const std::vector<std::string>& fields);

/// Whether the model has no spatial tendons.
bool AllTendonsFixed(const mjModel& m);

/// All pairs of geoms that may touch, in the order in which MuJoCo lists contacts.
std::vector<GeomPair> CandidatePairs(const mjModel& m);

/// Whether lanes have code of their own for the geoms' collision; else MuJoCo's is called.
bool HasOwnCollision(const mjModel& m, const GeomPair& pair);

/// Whether MuJoCo's collision functions of those pairs of shapes are still its own.
bool CollisionsAreMujocos();

/// Whether one of mjtDisableBit is set.
inline bool IsOff(const mjModel& m, int flag) { return (m.opt.disableflags & flag) != 0; }

}  // namespace pyfastenv::lanes
