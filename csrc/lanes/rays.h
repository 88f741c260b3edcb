// Rays of range finders: mj_ray to the bit, without most of its work. Of a geom that its function
// in MuJoCo dismisses by a bounding sphere that test alone is made, and of a height field the cells
// alone that a ray passes at their heights are tried. The rest is MuJoCo's functions.
#pragma once

#include <mujoco/mujoco.h>

#include <vector>

namespace pyfastenv::lanes {

class Rays {
 public:
  /// Whether a sensor is a distance along one ray, among geoms that rays here may meet.
  static bool Suit(const mjModel& m, int sensor);

  /// Rays among geoms as they are placed in `d`; both stay, and are only read.
  Rays(const mjModel& m, const mjData& d);

  /// The distance from a point, in lengths of `along`, to the nearest visible geom that is not of
  /// this body; -1: there is none. What mj_ray returns, for rays that it does not refuse (too short
  /// ones).
  double Cast(const double* from, const double* along, int excluded_body) const;

 private:
  struct Geom {
    int id, body, type;
    double pos[3];
    double squared;  // radius of the sphere that MuJoCo tries first; < 0: none
  };

  double CastAt(const Geom& geom, const double* from, const double* along) const;

  const mjModel& m_;
  const mjData& d_;
  std::vector<Geom> geoms_;  // that are visible
};

}  // namespace pyfastenv::lanes
