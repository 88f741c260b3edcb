// Which models lanes do.
#pragma once

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

namespace pyfastenv::lanes {

/// What the model has that lanes do not do; empty if nothing.
std::string UnsupportedFeature(const mjModel& m);

/// Two geoms that MuJoCo may find in contact, in the order in which it passes them to its collision
/// functions.
struct GeomPair {
  int geom1, geom2;
  int explicit_pair = -1;  // of mjModel's pairs
};
/// All of them, in the order in which MuJoCo lists contacts.
std::vector<GeomPair> CandidatePairs(const mjModel& m);

/// Whether lanes have code of their own for the geoms' collision; else MuJoCo's is called.
bool HasOwnCollision(const mjModel& m, const GeomPair& pair);

/// What a contact of two geoms is made of: mj_contactParam, or the explicit pair's.
struct ContactParameters {
  int condim;
  double friction[3];
  double solref[mjNREF];
  double solimp[mjNIMP];
  double margin, gap;
};
ContactParameters CombineGeoms(const mjModel& m, const GeomPair& pair);

}  // namespace pyfastenv::lanes
