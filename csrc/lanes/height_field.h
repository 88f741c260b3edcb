// Contacts of spheres and capsules with height fields, with MuJoCo's bits.
//
// MuJoCo asks GJK for the distance from the geom's center or segment to each prism under the geom.
// Here prisms that a face separates from the geom are left out, and GJK knows its two shapes.
// Operations stand in MuJoCo's order. A center or segment inside a prism is left to MuJoCo.
#pragma once

#include <mujoco/mujoco.h>

namespace pyfastenv::lanes {

/// The contacts (mjMAXCONPAIR at most) that mjCOLLISIONFUNC finds of a height field `geom1` and a
/// `geom2` in these frames (`mat` by rows); -1 if it has to be asked, as for all other geoms.
int CollideHeightField(const mjModel& m, int geom1, const double* pos1, const double* mat1,
                       int geom2, const double* pos2, const double* mat2, double margin,
                       mjPreContact* contacts);

}  // namespace pyfastenv::lanes
