// Contacts of planes, spheres and capsules: mj_collision.
//
// All pairs are tried in the order in which MuJoCo lists contacts, which stands in the plan, so no
// sorting is needed; MuJoCo's broad and middle phases only leave out pairs that do not touch.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// One contact point: distance, position, normal, and a wished first tangent (zero: any).
struct Touch {
  Lane dist;
  Lane pos[3];
  Lane normal[3];
  Lane tangent[3];
  unsigned undefined = 0;  // lanes in which centres coincide, so that the normal is another
};

// Appends a touch to the contacts of the lanes in `hit`.
void Append(const Tables& t, Scratch& s, unsigned hit, int pair, const Touch& touch) {
  Contacts& c = s.contacts;
  s.redo |= hit & touch.undefined;
  for (; hit != 0; hit &= hit - 1) {
    const int l = __builtin_ctz(hit);
    const int k = c.count[l];
    if (k == t.max_contacts) {
      s.redo |= 1u << l;
      continue;
    }
    ++c.count[l];
    c.pair[k][l] = pair;
    At(c.dist[k], l) = At(touch.dist, l);
    for (int i = 0; i < 3; ++i) {
      At(c.pos[3 * k + i], l) = At(touch.pos[i], l);
      At(c.frame[9 * k + i], l) = At(touch.normal[i], l);
      At(c.frame[9 * k + 3 + i], l) = At(touch.tangent[i], l);
    }
  }
}

// The third column of a frame: a plane's normal, a capsule's axis.
void AxisOf(const Scratch& s, int geom, Lane* axis) {
  for (int i = 0; i < 3; ++i) axis[i] = s.geom_xmat[9 * geom + 3 * i + 2];
}

// A sphere (or a capsule's end) at `center` against a plane.
unsigned PlaneSphere(const Lane* normal, const Lane* origin, const Lane* center, double radius,
                     double margin, Touch& touch) {
  Lane from_plane[3];
  for (int i = 0; i < 3; ++i) from_plane[i] = center[i] - origin[i];
  const Lane height = Dot3(from_plane, normal);
  touch.dist = height - radius;
  const unsigned hit = Bits((height <= margin + radius) & (touch.dist < margin));
  if (hit == 0) return 0;
  const Lane down = -touch.dist / 2.0 - radius;
  for (int i = 0; i < 3; ++i) {
    touch.pos[i] = center[i] + normal[i] * down;
    touch.normal[i] = normal[i];
  }
  return hit;
}

unsigned SphereSphere(const Lane* center1, double radius1, const Lane* center2, double radius2,
                      double margin, Touch& touch) {
  Lane d[3];
  for (int i = 0; i < 3; ++i) d[i] = center1[i] - center2[i];
  const Lane squared = Dot3(d, d);
  const double reach = margin + radius1 + radius2;
  touch.dist = Sqrt(squared) - radius1 - radius2;
  const unsigned hit = Bits((squared <= reach * reach) & (touch.dist < margin));
  if (hit == 0) return 0;
  for (int i = 0; i < 3; ++i) touch.normal[i] = center2[i] - center1[i];
  const Lane length = Sqrt(Dot3(touch.normal, touch.normal));
  touch.undefined = Bits(length < kMinVal);
  const Lane inverse = 1.0 / length;
  const Lane depth = radius1 + touch.dist / 2.0;
  for (int i = 0; i < 3; ++i) {
    touch.normal[i] = touch.normal[i] * inverse;
    touch.pos[i] = touch.normal[i] * depth + center1[i];
    touch.tangent[i] = Splat(0);
  }
  return hit;
}

void PlanePair(const Tables& t, Scratch& s, int index) {
  const Pair& pair = t.pair[index];
  const Lane* center = s.geom_xpos + 3 * pair.geom2;
  const Lane* origin = s.geom_xpos + 3 * pair.geom1;
  Touch touch;
  Lane normal[3];
  AxisOf(s, pair.geom1, normal);
  if (pair.kind == PairKind::kPlaneSphere) {
    for (int i = 0; i < 3; ++i) touch.tangent[i] = Splat(0);
    const unsigned hit = PlaneSphere(normal, origin, center, pair.radius2, pair.margin, touch);
    Append(t, s, hit, index, touch);
    return;
  }
  Lane end[3];
  AxisOf(s, pair.geom2, touch.tangent);
  for (int i = 0; i < 3; ++i) end[i] = center[i] + touch.tangent[i] * pair.half_length2;
  Append(t, s, PlaneSphere(normal, origin, end, pair.radius2, pair.margin, touch), index, touch);
  for (int i = 0; i < 3; ++i) end[i] = center[i] - touch.tangent[i] * pair.half_length2;
  Append(t, s, PlaneSphere(normal, origin, end, pair.radius2, pair.margin, touch), index, touch);
}

void SphereCapsule(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  const Lane* sphere = s.geom_xpos + 3 * pair.geom1;
  const Lane* capsule = s.geom_xpos + 3 * pair.geom2;
  Lane axis[3], d[3], nearest[3];
  AxisOf(s, pair.geom2, axis);
  for (int i = 0; i < 3; ++i) d[i] = sphere[i] - capsule[i];
  const Lane along = Clip(Dot3(axis, d), -pair.half_length2, pair.half_length2);
  for (int i = 0; i < 3; ++i) nearest[i] = axis[i] * along + capsule[i];
  Touch touch;
  const unsigned hit =
      SphereSphere(sphere, pair.radius1, nearest, pair.radius2, pair.margin, touch);
  Append(t, s, near & hit, index, touch);
}

// Two segments a0 + s u and b0 + t v, 0 <= s, t <= 1.
struct Segments {
  Lane a0[3], u[3], b0[3], v[3], w[3];  // w = a0 - b0
  Lane uu, vv, uv, uw, wv;
  Lane s_at_t0, s_at_t1;  // nearest on the first to the ends of the second
};

Segments MakeSegments(const Scratch& s, const Pair& pair) {
  Segments g;
  Lane axis1[3], axis2[3];
  AxisOf(s, pair.geom1, axis1);
  AxisOf(s, pair.geom2, axis2);
  for (int i = 0; i < 3; ++i) {
    const Lane center1 = s.geom_xpos[3 * pair.geom1 + i];
    const Lane center2 = s.geom_xpos[3 * pair.geom2 + i];
    const Lane half1 = axis1[i] * pair.half_length1;
    const Lane half2 = axis2[i] * pair.half_length2;
    g.a0[i] = center1 - half1;
    g.u[i] = (center1 + half1) - g.a0[i];
    g.b0[i] = center2 - half2;
    g.v[i] = (center2 + half2) - g.b0[i];
    g.w[i] = g.a0[i] - g.b0[i];
  }
  g.uu = Dot3(g.u, g.u);
  g.vv = Dot3(g.v, g.v);
  g.uv = Dot3(g.u, g.v);
  g.uw = Dot3(g.u, g.w);
  g.wv = Dot3(g.w, g.v);
  g.s_at_t0 = Clip(-g.uw / g.uu, 0, 1);
  g.s_at_t1 = Clip((g.uv - g.uw) / g.uu, 0, 1);
  return g;
}

// Where t leaves the second segment, its end is taken, and the nearest point to that on the first.
void Confine(const Segments& g, Lane& s, Lane& t) {
  const Mask below = t < 0.0, above = t > 1.0;
  s = Select(below, g.s_at_t0, Select(above, g.s_at_t1, s));
  t = Select(below, Splat(0), Select(above, Splat(1), t));
}

void CapsuleCapsule(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  const Segments g = MakeSegments(s, pair);
  const auto try_points = [&](Lane along1, Lane along2, unsigned lanes) {
    Lane point1[3], point2[3];
    Confine(g, along1, along2);
    for (int i = 0; i < 3; ++i) {
      point1[i] = g.u[i] * along1 + g.a0[i];
      point2[i] = g.v[i] * along2 + g.b0[i];
    }
    Touch touch;
    const unsigned hit =
        SphereSphere(point1, pair.radius1, point2, pair.radius2, pair.margin, touch);
    Append(t, s, lanes & hit, index, touch);
  };
  Lane e[3];
  Cross(e, g.u, g.v);
  const Lane ee = Dot3(e, e);
  constexpr double kParallel = 0x1.5798ee2308c3ap-27;  // 1e-8, of squared lengths
  const unsigned general = near & Bits(ee > (g.uu * kParallel) * g.vv);
  if (general != 0) {
    Lane f[3];
    Cross(f, g.v, g.w);
    const Lane along1 = Clip(Dot3(e, f) / ee, 0, 1);
    try_points(along1, (g.uv * along1 + g.wv) / g.vv, general);
  }
  // parallel: one point for each end of the first
  const unsigned parallel = near & ~general;
  if (parallel != 0) {
    try_points(Splat(0), g.wv / g.vv, parallel);
    try_points(Splat(1), (g.wv + g.uv) / g.vv, parallel);
  }
}

// Lanes in which the bounding spheres of a pair meet.
unsigned Near(const Scratch& s, const Pair& pair) {
  const Lane* p1 = s.geom_xpos + 3 * pair.geom1;
  const Lane* p2 = s.geom_xpos + 3 * pair.geom2;
  Lane d[3];
  for (int i = 0; i < 3; ++i) d[i] = p1[i] - p2[i];
  return Bits(!(Dot3(d, d) > pair.bound_squared)) & kAllLanes;
}

}  // namespace

void Collide(const Tables& t, Scratch& s) {
  Contacts& c = s.contacts;
  for (int l = 0; l < kWidth; ++l) c.count[l] = 0;
  for (int k = 0; k < t.num_pairs; ++k) {
    const Pair& pair = t.pair[k];
    if (pair.kind == PairKind::kPlaneSphere || pair.kind == PairKind::kPlaneCapsule) {
      PlanePair(t, s, k);
      continue;
    }
    const unsigned near = Near(s, pair);
    if (near == 0) continue;
    if (pair.kind == PairKind::kCapsuleCapsule) {
      CapsuleCapsule(t, s, k, near);
    } else if (pair.kind == PairKind::kSphereCapsule) {
      SphereCapsule(t, s, k, near);
    } else {
      Touch touch;
      const unsigned hit =
          SphereSphere(s.geom_xpos + 3 * pair.geom1, pair.radius1, s.geom_xpos + 3 * pair.geom2,
                       pair.radius2, pair.margin, touch);
      Append(t, s, near & hit, k, touch);
    }
  }
  c.max_count = 0;
  for (int l = 0; l < kWidth; ++l) {
    if (c.count[l] > c.max_count) c.max_count = c.count[l];
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
