// Capsules against capsules.
#include "lanes/stages/touches.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

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
    const Lane half1 = axis1[i] * HalfLength(s, pair.geom1);
    const Lane half2 = axis2[i] * HalfLength(s, pair.geom2);
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

}  // namespace

void CollideCapsuleCapsule(const Tables& t, Scratch& s, int index, unsigned near) {
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
        SphereSphere(s, pair, point1, Radius(s, pair.geom1), point2, Radius(s, pair.geom2),
                     LimitOf(t, s, PairLimit::kReach, index), touch);
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

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
