// Which models lanes do.
#pragma once

#include <mujoco/mujoco.h>

#include <cmath>
#include <string>
#include <vector>

#include "lanes/contact_source.h"
#include "lanes/fields.h"

namespace pyfastenv::lanes {

/// The first feature of the model that lanes do not do; empty if there is none.
std::string UnsupportedFeature(const mjModel& m);
/// Which of these fields of mjModel no environment can have its own of, in lanes; empty if none.
std::string UnsupportedField(const mjModel& m, const std::vector<std::string>& fields);

/// Whether MuJoCo's functions make and solve the constraints, since lanes have no code for them:
/// sparse Jacobians, many dofs, CG, elliptic cones with a dual solver or with solreffriction.
bool AsksForConstraints(const mjModel& m);

/// Whether the model has no spatial tendons.
bool AllTendonsFixed(const mjModel& m);
/// Whether lanes compute tendons: all are fixed, or one of them has a force, an actuator or a
/// constraint.
bool TendonsMatter(const mjModel& m);
/// Whether a step of such a model in lanes computes the field.
bool Computes(const mjModel& m, Field field);
/// Whether spatial tendons may pull at bodies, as cfrc_ext, forces and torques show.
inline bool SpatialTendonsPull(const mjModel& m) { return TendonsMatter(m) && !AllTendonsFixed(m); }

/// The site by which a tendon passes the geom that is its k-th wrap object; -1: any way.
inline int SideSite(const mjModel& m, int k) {
  return static_cast<int>(std::floor(m.wrap_prm[k] + 0.5));
}

/// All pairs of geoms that may touch, in the order in which MuJoCo lists contacts.
std::vector<GeomPair> CandidatePairs(const mjModel& m);

/// Contacts of one environment beyond which it is left to mj_step, whose memory (size memory) may
/// run out where lanes' does not; 0 if it may with few.
int MaxContacts(const mjModel& m);

/// Whether MuJoCo descends into two bodies' trees of bounding volumes.
bool HasMiddlePhase(const mjModel& m, int body1, int body2);

/// Whether lanes have code of their own for the geoms' collision; else MuJoCo's is called.
bool HasOwnCollision(const mjModel& m, const GeomPair& pair);

/// Whether MuJoCo's collision functions of those pairs of shapes are still its own.
bool CollisionsAreMujocos();

/// What a joint's dofs or a tendon have of the actuators that drive it.
struct OfActuators {
  double damping, armature;
  double dampingpoly[mjNPOLY];  // with their own coefficients
};
/// `dampingpoly`: their own, to which MuJoCo adds one actuator's after the other.
OfActuators FromActuators(const mjModel& m, mjtObj type, int id, const mjtNum* dampingpoly);

/// Whether MuJoCo solves for forces, by a matrix of all rows by all rows.
inline bool SolvesDual(const mjModel& m) {
  return m.opt.solver == mjSOL_PGS || m.opt.noslip_iterations > 0;
}

/// Whether one of mjtDisableBit is set.
inline bool IsOff(const mjModel& m, int flag) { return (m.opt.disableflags & flag) != 0; }

}  // namespace pyfastenv::lanes
