// Contact points of single pairs of geoms, of which the collision stage makes the contacts.
#pragma once

#include "lanes/stages/scratch.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// One contact point: distance, position, normal, and a wished first tangent (zero: any).
struct Touch {
  Lane dist;
  Lane least = Splat(-__builtin_huge_val());  // that the true distance may be, whatever dist says
  Lane pos[3];
  Lane normal[3];
  Lane tangent[3];
};

inline const Lane& LimitOf(const Tables& t, const Scratch& s, PairLimit which, int pair) {
  return s.pair_limits[static_cast<int>(which) * t.num_pairs + pair];
}
/// A sphere's or capsule's; of a capsule or cylinder, half of its length.
inline const Lane& Radius(const Scratch& s, int geom) { return s.geom_size[3 * geom]; }
inline const Lane& HalfLength(const Scratch& s, int geom) { return s.geom_size[3 * geom + 1]; }

/// Appends a touch to the contacts of the lanes in `hit` in which it is nearer than the margin.
/// Others MuJoCo lists without rows: where sensors are made of contacts, their lanes are left to
/// it.
void Append(const Tables& t, Scratch& s, unsigned hit, int pair, const Touch& touch);

/// The third column of a frame: a plane's normal, a capsule's axis.
inline void AxisOf(const Scratch& s, int geom, Lane* axis) {
  for (int i = 0; i < 3; ++i) axis[i] = s.geom_xmat[9 * geom + 3 * i + 2];
}

/// A sphere (or a capsule's end) at `center` against a plane. These functions return the lanes in
/// which the two are within `reach`, and set no tangent.
unsigned PlaneSphere(const Lane* normal, const Lane* origin, const Lane* center, Lane radius,
                     Lane reach, Touch& touch);
unsigned SphereSphere(const Scratch& s, const Pair& pair, const Lane* center1, Lane radius1,
                      const Lane* center2, Lane radius2, Lane reach, Touch& touch);

// ---- pairs by their shapes, in the lanes `near` -------------------------------------------------

void CollidePlaneSphere(const Tables& t, Scratch& s, int index, unsigned near);
void CollidePlaneCapsule(const Tables& t, Scratch& s, int index, unsigned near);
void CollidePlaneBox(const Tables& t, Scratch& s, int index, unsigned near);
void CollidePlaneCylinder(const Tables& t, Scratch& s, int index, unsigned near);
void CollideSphereSphere(const Tables& t, Scratch& s, int index, unsigned near);
void CollideSphereCapsule(const Tables& t, Scratch& s, int index, unsigned near);
void CollideCapsuleCapsule(const Tables& t, Scratch& s, int index, unsigned near);
/// Any others, by MuJoCo.
void CollideOther(const Tables& t, Scratch& s, int index, unsigned near);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
