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
};
/// All of them, in the order in which MuJoCo lists contacts.
std::vector<GeomPair> CandidatePairs(const mjModel& m);

/// What a contact of two geoms is made of: mj_contactParam.
struct ContactParameters {
  int condim;
  double friction[3];
  double solref[mjNREF];
  double solimp[mjNIMP];
};
ContactParameters CombineGeoms(const mjModel& m, int geom1, int geom2);

}  // namespace pyfastenv::lanes
