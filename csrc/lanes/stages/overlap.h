// Whether the boxes and spheres around two geoms of one environment meet beyond doubt.
#pragma once

#include "lanes/stages/lane.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// A geom's bounding volumes in space; `mat` by rows.
struct PlacedBounds {
  const GeomBounds& bounds;
  const double *pos, *mat;
};

/// Whether projections of both geoms' boxes overlap by `depth` at least on every axis there is, and
/// so do those of their bounding spheres if `spheres`.
bool BoundsOverlap(const PlacedBounds& a, const PlacedBounds& b, double depth, bool spheres);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
