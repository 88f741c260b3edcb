// Two geoms that may touch, and what their contact is made of: mj_contactParam.
#pragma once

#include <mujoco/mujoco.h>

#include "lanes/numbers.h"

namespace pyfastenv::lanes {

/// Two geoms that MuJoCo may find in contact, in the order in which it passes them to its collision
/// functions.
struct GeomPair {
  int geom1, geom2;
  int explicit_pair = -1;  // of mjModel's pairs
};

/// Where a contact's parameters come from: from geoms' own, which may differ between environments,
/// or from an explicit pair, which has the model's.
struct ContactSource {
  int condim;
  double margin, gap;
  // of geoms; -1 for an explicit pair
  int geom1, geom2;  // the second is -1 if the first has priority
  double mix;        // the first's share in solref and solimp
  // of an explicit pair
  int explicit_pair;  // -1 for geoms
  double friction[kFrictions], solref[mjNREF], solimp[mjNIMP];
};
ContactSource SourceOfContact(const mjModel& m, const GeomPair& pair);

/// The parameters, from geoms' own (arrays of mjModel's layout). `friction`: two directions of
/// sliding, spinning, two of rolling.
void CombineFriction(const ContactSource& source, const double* geom_friction, double* friction);
void CombineSolver(const ContactSource& source, const double* geom_solref,
                   const double* geom_solimp, double* solref, double* solimp);

/// Whether lanes know the format of solref.
bool KnownReference(const double* solref);

}  // namespace pyfastenv::lanes
