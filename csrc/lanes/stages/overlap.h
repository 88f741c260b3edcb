// Whether boxes and spheres around two geoms meet beyond doubt, in one environment, or are apart
// beyond doubt, in all lanes.
#pragma once

#include "lanes/stages/scratch.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// A geom's bounding volumes in space; `mat` by rows.
struct PlacedBounds {
  const GeomBounds& bounds;
  const double *pos, *mat;
};

/// Whether projections of both geoms' boxes overlap by `depth` at least on every axis there is, and
/// so do those of their bounding spheres if `spheres`.
bool BoundsOverlap(const PlacedBounds& a, const PlacedBounds& b, double depth, bool spheres);

/// Lanes in which the boxes of a pair's geoms (of the second, if the first is a plane) are so far
/// apart along a normal of their faces (of the plane) that nothing touches, as MuJoCo's middle
/// phase asks. There its collision functions need not be called.
unsigned BoxesApart(const Tables& t, const Scratch& s, const Pair& pair);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
