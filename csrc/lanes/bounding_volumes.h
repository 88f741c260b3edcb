// How deep two geoms must touch for MuJoCo's broad and middle phases to pass them on.
//
// Lanes try every pair of geoms whose bounding spheres meet. MuJoCo first sweeps over boxes around
// bodies and descends into trees of boxes, whose numbers the compiler has made: after an edit of
// the model (geom_size, geom_margin, body_ipos …) they may enclose the geoms no longer, and between
// boxes that barely meet rounding decides. A touch that MuJoCo would find for certain is nearer
// than Sight says; what is not is left to mj_step.
#pragma once

#include <mujoco/mujoco.h>

#include <vector>

#include "lanes/contact_source.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

/// A box, as geom_aabb has it.
struct Box {
  double center[3], half[3];
};

/// Boxes (ngeom) around geoms whose shapes are no numbers of an environment's own: meshes and
/// height fields.
std::vector<Box> FixedShapes(const mjModel& m);

class BoundingVolumes {
 public:
  /// Reads the model as it stands; `fixed` are its FixedShapes.
  BoundingVolumes(const mjModel& m, const std::vector<Box>& fixed);

  /// `reach`: margin and gap of the pair, within which collision functions report points.
  Sight Of(const mjModel& m, const GeomPair& pair, double reach) const;
  /// How far the boxes of two geoms (geom_aabb) must be apart along one of their faces' normals for
  /// collision functions to report nothing for certain; infinite: they may report at any distance.
  double ApartFrom(const mjModel& m, const GeomPair& pair, double reach) const;

 private:
  // how far a geom's shape sticks out of boxes, in the length of a vector
  struct Excess {
    double own = 0;    // of geom_aabb
    double swept = 0;  // of what the sweep takes: that and the bounding sphere
    double nodes = 0;  // of the nodes above it in its body's tree
  };

  void DescendTree(const mjModel& m, const std::vector<Box>& shapes, int body);

  std::vector<Excess> excess_;  // (ngeom)
};

}  // namespace pyfastenv::lanes
