// Which models lanes do.
#pragma once

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

namespace pyfastenv::lanes {

/// What the model has that lanes do not do; empty if nothing.
std::string UnsupportedFeature(const mjModel& m);
/// Which of these fields of mjModel no environment can have its own of, in lanes; empty if none.
std::string UnsupportedField(const mjModel& m, const std::vector<std::string>& fields);

/// Two geoms that MuJoCo may find in contact, in the order in which it passes them to its collision
/// functions.
struct GeomPair {
  int geom1, geom2;
};
/// All of them, in the order in which MuJoCo lists contacts.
std::vector<GeomPair> CandidatePairs(const mjModel& m);

/// Of which geoms a contact's parameters are: mj_contactParam.
struct ContactSource {
  int condim;
  int geom1, geom2;  // the second is -1 if the first has priority
  double mix;        // the first's share in solref and solimp
};
ContactSource SourceOfContact(const mjModel& m, int geom1, int geom2);

/// The parameters, from geoms' own (arrays of mjModel's layout).
double CombineFriction(const ContactSource& source, const double* geom_friction);
void CombineSolver(const ContactSource& source, const double* geom_solref,
                   const double* geom_solimp, double* solref, double* solimp);

/// Whether lanes know the shape of solimp's sigmoid, and the format of solref.
bool KnownImpedance(const double* solimp);
bool KnownReference(const double* solref);

}  // namespace pyfastenv::lanes
