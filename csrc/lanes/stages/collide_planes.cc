// Planes against other shapes.
#include "lanes/stages/touches.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

unsigned PlaneSphere(const Lane* normal, const Lane* origin, const Lane* center, Lane radius,
                     Lane reach, Touch& touch) {
  Lane from_plane[3];
  for (int i = 0; i < 3; ++i) from_plane[i] = center[i] - origin[i];
  const Lane height = Dot3(from_plane, normal);
  touch.dist = height - radius;
  const unsigned hit = Bits(height <= reach + radius);
  if (hit == 0) return 0;
  const Lane down = -touch.dist / 2.0 - radius;
  for (int i = 0; i < 3; ++i) {
    touch.pos[i] = center[i] + normal[i] * down;
    touch.normal[i] = normal[i];
  }
  return hit;
}

void CollidePlaneSphere(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  Touch touch;
  Lane normal[3];
  AxisOf(s, pair.geom1, normal);
  for (int i = 0; i < 3; ++i) touch.tangent[i] = Splat(0);
  const unsigned hit =
      PlaneSphere(normal, s.geom_xpos + 3 * pair.geom1, s.geom_xpos + 3 * pair.geom2,
                  Radius(s, pair.geom2), LimitOf(t, s, PairLimit::kReach, index), touch);
  Append(t, s, near & hit, index, touch);
}

void CollidePlaneCapsule(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  const Lane* center = s.geom_xpos + 3 * pair.geom2;
  Touch touch;
  Lane normal[3], end[3];
  AxisOf(s, pair.geom1, normal);
  AxisOf(s, pair.geom2, touch.tangent);
  const auto try_end = [&] {
    const unsigned hit =
        PlaneSphere(normal, s.geom_xpos + 3 * pair.geom1, end, Radius(s, pair.geom2),
                    LimitOf(t, s, PairLimit::kReach, index), touch);
    Append(t, s, near & hit, index, touch);
  };
  const Lane half_length = HalfLength(s, pair.geom2);
  for (int i = 0; i < 3; ++i) end[i] = center[i] + touch.tangent[i] * half_length;
  try_end();
  for (int i = 0; i < 3; ++i) end[i] = center[i] - touch.tangent[i] * half_length;
  try_end();
}

// The four lowest corners, in the order of the corners' numbers.
void CollidePlaneBox(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  const Lane* center = s.geom_xpos + 3 * pair.geom2;
  const Lane* origin = s.geom_xpos + 3 * pair.geom1;
  const Lane* frame = s.geom_xmat + 9 * pair.geom2;
  Touch touch;
  Lane from_plane[3], edge[9];
  AxisOf(s, pair.geom1, touch.normal);
  for (int i = 0; i < 3; ++i) {
    from_plane[i] = center[i] - origin[i];
    touch.tangent[i] = Splat(0);
    for (int k = 0; k < 3; ++k)
      edge[3 * k + i] = frame[3 * i + k] * s.geom_size[3 * pair.geom2 + k];
  }
  const Lane height = Dot3(from_plane, touch.normal);
  const Lane reach = LimitOf(t, s, PairLimit::kReach, index);
  int found[kWidth] = {};
  for (int corner = 0; corner < 8 && near != 0; ++corner) {
    Lane offset[3];
    for (int i = 0; i < 3; ++i) {
      const Lane x = (corner & 1) != 0 ? edge[i] : -edge[i];
      const Lane y = (corner & 2) != 0 ? edge[3 + i] : -edge[3 + i];
      const Lane z = (corner & 4) != 0 ? edge[6 + i] : -edge[6 + i];
      offset[i] = x + y + z;
    }
    const Lane below = Dot3(touch.normal, offset);
    touch.dist = height + below;
    const unsigned hit = near & ~Bits((touch.dist > reach) | (below > 0.0));
    if (hit == 0) continue;
    const Lane half = -touch.dist / 2.0;
    for (int i = 0; i < 3; ++i) {
      touch.pos[i] = (offset[i] + center[i]) + touch.normal[i] * half;
    }
    Append(t, s, hit, index, touch);
    for (unsigned lanes = hit; lanes != 0; lanes &= lanes - 1) {
      const int l = __builtin_ctz(lanes);
      if (++found[l] == 4) near &= ~(1u << l);
    }
  }
}

// The lowest points of both rims, and two more on the lower one.
void CollidePlaneCylinder(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  const Lane* center = s.geom_xpos + 3 * pair.geom2;
  const Lane* origin = s.geom_xpos + 3 * pair.geom1;
  const Lane* frame = s.geom_xmat + 9 * pair.geom2;
  const Lane radius = Radius(s, pair.geom2), half_length = HalfLength(s, pair.geom2);
  const Lane reach = LimitOf(t, s, PairLimit::kReach, index);
  Touch touch;
  Lane axis[3], from_plane[3], rim[3];
  AxisOf(s, pair.geom1, touch.normal);
  AxisOf(s, pair.geom2, axis);
  // the axis, pointing down
  Lane along = Dot3(touch.normal, axis);
  const Mask up = along > 0.0;
  along = Select(up, -along, along);
  for (int i = 0; i < 3; ++i) {
    axis[i] = Select(up, -axis[i], axis[i]);
    from_plane[i] = center[i] - origin[i];
    touch.tangent[i] = Splat(0);
  }
  const Lane height = Dot3(from_plane, touch.normal);
  // from a rim's center to its lowest point; any, if the disk is parallel to the plane
  for (int i = 0; i < 3; ++i) rim[i] = axis[i] * along - touch.normal[i];
  const Lane squared = Dot3(rim, rim);
  const Mask tilted = squared >= kMinVal * kMinVal;
  const Lane tilt = Sqrt(squared), scale = radius / tilt;
  for (int i = 0; i < 3; ++i) {
    rim[i] = Select(tilted, rim[i] * scale, frame[3 * i] * radius);
    axis[i] = axis[i] * half_length;
  }
  along = along * half_length;
  const Lane down = Dot3(rim, touch.normal);
  const auto add = [&](Lane dist, unsigned lanes) {
    touch.dist = dist;
    for (int i = 0; i < 3; ++i) {
      touch.pos[i] = touch.pos[i] + touch.normal[i] * (dist * -0.5);
    }
    Append(t, s, lanes, index, touch);
  };

  const Lane lowest = height + along + down;
  touch.least = height + along - radius * tilt;  // of a hair's tilt, `down` is made by rounding
  near &= Bits(lowest <= reach);
  if (near == 0) return;
  for (int i = 0; i < 3; ++i) touch.pos[i] = center[i] + rim[i] + axis[i];
  add(lowest, near);

  const Lane other = height - along + down;
  for (int i = 0; i < 3; ++i) touch.pos[i] = center[i] + rim[i] - axis[i];
  add(other, near & Bits(other <= reach));

  const Lane beside = height + along + down * -0.5;
  near &= Bits(beside <= reach);
  if (near == 0) return;
  Lane side[3];
  Cross(side, rim, axis);
  const Lane length = Sqrt(Dot3(side, side));
  const Mask no_side = length < kMinVal;
  const Lane inverse = 1.0 / length;
  constexpr double kSqrt3 = 0x1.bb67ae8584caap+0;
  for (int i = 0; i < 3; ++i) {
    const Lane unit = Select(no_side, Splat(i == 0), side[i] * inverse);
    side[i] = unit * (radius * kSqrt3 * 0.5);
  }
  for (int i = 0; i < 3; ++i) touch.pos[i] = center[i] + side[i] + axis[i] + rim[i] * -0.5;
  add(beside, near);
  for (int i = 0; i < 3; ++i) touch.pos[i] = center[i] - side[i] + axis[i] + rim[i] * -0.5;
  add(beside, near);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
