// Rays of range finders: mj_ray to the bit, without most of its work. Lanes tell apart which geoms
// a ray may meet first (stages/rays.cc); of a height field the cells alone that it passes at their
// heights are tried. The rest is MuJoCo's functions.
#pragma once

#include <mujoco/mujoco.h>

#include <vector>

#include "lanes/tables.h"

namespace pyfastenv::lanes {

/// Whether rays meet a geom.
inline bool IsVisible(const mjModel& m, int geom) {
  const int material = m.geom_matid[geom];
  const float* rgba =
      material < 0 ? m.geom_rgba + ptrdiff_t{4} * geom : m.mat_rgba + ptrdiff_t{4} * material;
  return rgba[3] != 0;
}

struct Heights {
  float low, high;
};

class Rays {
 public:
  /// Whether a sensor is a distance along one ray, among geoms that rays here may meet.
  static bool Suit(const mjModel& m, int sensor);
  /// What rays meet: visible geoms, those that take longest last.
  static std::vector<RayTarget> Targets(const mjModel& m);

  /// The model stays. `tables` are its plan's.
  Rays(const mjModel& m, const Tables& tables);

  /// NarrowPhaseCall::cast, of what is not a mesh. `d`: what a geom's frame may be written to.
  double Cast(const RayTarget& target, const GeomPlace& place, const double* from,
              const double* along, mjData& d) const;

 private:
  const mjModel& m_;
  std::vector<std::vector<Heights>> blocks_;  // of the cells of each height field that rays meet
};

}  // namespace pyfastenv::lanes
