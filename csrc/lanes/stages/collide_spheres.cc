// Spheres against spheres and capsules.
#include "lanes/stages/touches.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// Where centres coincide: across both frames' third axes, as MuJoCo has it.
void NormalWithoutDirection(const Scratch& s, const Pair& pair, Mask where, Lane* normal) {
  Lane axis1[3], axis2[3], across[3];
  AxisOf(s, pair.geom1, axis1);
  AxisOf(s, pair.geom2, axis2);
  Cross(across, axis1, axis2);
  Normalize3(across);
  for (int i = 0; i < 3; ++i) normal[i] = Select(where, across[i], normal[i]);
}

}  // namespace

unsigned SphereSphere(const Scratch& s, const Pair& pair, const Lane* center1, Lane radius1,
                      const Lane* center2, Lane radius2, Lane reach, Touch& touch) {
  Lane d[3];
  for (int i = 0; i < 3; ++i) d[i] = center1[i] - center2[i];
  const Lane squared = Dot3(d, d);
  reach = reach + radius1 + radius2;
  touch.dist = Sqrt(squared) - radius1 - radius2;
  const unsigned hit = Bits(squared <= reach * reach);
  if (hit == 0) return 0;
  for (int i = 0; i < 3; ++i) touch.normal[i] = center2[i] - center1[i];
  const Lane length = Sqrt(Dot3(touch.normal, touch.normal));
  const Lane inverse = 1.0 / length;
  for (int i = 0; i < 3; ++i) touch.normal[i] = touch.normal[i] * inverse;
  const Mask coincide = length < kMinVal;
  if (Any(coincide)) NormalWithoutDirection(s, pair, coincide, touch.normal);
  const Lane depth = radius1 + touch.dist / 2.0;
  for (int i = 0; i < 3; ++i) {
    touch.pos[i] = touch.normal[i] * depth + center1[i];
    touch.tangent[i] = Splat(0);
  }
  return hit;
}

void CollideSphereSphere(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  Touch touch;
  const unsigned hit = SphereSphere(s, pair, s.geom_xpos + 3 * pair.geom1, Radius(s, pair.geom1),
                                    s.geom_xpos + 3 * pair.geom2, Radius(s, pair.geom2),
                                    LimitOf(t, s, PairLimit::kReach, index), touch);
  Append(t, s, near & hit, index, touch);
}

void CollideSphereCapsule(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  const Lane* sphere = s.geom_xpos + 3 * pair.geom1;
  const Lane* capsule = s.geom_xpos + 3 * pair.geom2;
  Lane axis[3], d[3], nearest[3];
  AxisOf(s, pair.geom2, axis);
  const Lane half_length = HalfLength(s, pair.geom2);
  for (int i = 0; i < 3; ++i) d[i] = sphere[i] - capsule[i];
  const Lane along = Clip(Dot3(axis, d), -half_length, half_length);
  for (int i = 0; i < 3; ++i) nearest[i] = axis[i] * along + capsule[i];
  Touch touch;
  const unsigned hit =
      SphereSphere(s, pair, sphere, Radius(s, pair.geom1), nearest, Radius(s, pair.geom2),
                   LimitOf(t, s, PairLimit::kReach, index), touch);
  Append(t, s, near & hit, index, touch);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
