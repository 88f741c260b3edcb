// Contacts: mj_collision.
//
// All pairs are tried in the order in which MuJoCo lists contacts, which stands in the plan, so no
// sorting is needed. MuJoCo's broad and middle phases leave out pairs that do not touch, or hardly:
// where they may (BoundingVolumes), MuJoCo is asked what it lists.
#include <math.h>

#include "lanes/stages/overlap.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"
#include "lanes/stages/touches.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// Lanes in which a touch is not so slight that MuJoCo's broad and middle phases may not see it.
unsigned SeenIn(const Tables& t, const Scratch& s, int index, const Touch& touch) {
  const Pair& pair = t.pair[index];
  if (pair.all_seen) return kAllLanes;
  const Lane size = Abs(touch.pos[0]) + Abs(touch.pos[1]) + Abs(touch.pos[2]);
  const Lane seen = LimitOf(t, s, PairLimit::kSeen, index);
  return Bits(Max(touch.dist, touch.least) < seen - pair.rounding * size);
}

// Lanes in which MuJoCo's own filter (mj_filterSphere) lets the pair pass: bounding spheres meet.
unsigned Near(const Tables& t, const Scratch& s, int index) {
  const Pair& pair = t.pair[index];
  const Lane bound = LimitOf(t, s, PairLimit::kBound, index);
  const Lane* p1 = s.geom_xpos + 3 * pair.geom1;
  const Lane* p2 = s.geom_xpos + 3 * pair.geom2;
  Lane d[3];
  if (pair.plane) {
    Lane normal[3];
    AxisOf(s, pair.geom1, normal);
    for (int i = 0; i < 3; ++i) d[i] = p2[i] - p1[i];
    return Bits(!(Dot3(d, normal) > bound)) & kAllLanes;
  }
  for (int i = 0; i < 3; ++i) d[i] = p1[i] - p2[i];
  return Bits(!(Dot3(d, d) > bound * bound)) & kAllLanes;
}

void CollidePair(const Tables& t, Scratch& s, int index, unsigned near) {
  switch (t.pair[index].kind) {
    case PairKind::kPlaneSphere:
      return CollidePlaneSphere(t, s, index, near);
    case PairKind::kPlaneCapsule:
      return CollidePlaneCapsule(t, s, index, near);
    case PairKind::kPlaneBox:
      return CollidePlaneBox(t, s, index, near);
    case PairKind::kPlaneCylinder:
      return CollidePlaneCylinder(t, s, index, near);
    case PairKind::kSphereSphere:
      return CollideSphereSphere(t, s, index, near);
    case PairKind::kSphereCapsule:
      return CollideSphereCapsule(t, s, index, near);
    case PairKind::kCapsuleCapsule:
      return CollideCapsuleCapsule(t, s, index, near);
    case PairKind::kOther:
      return CollideOther(t, s, index, near);
  }
}

// Whether MuJoCo's broad and middle phases pass on a pair whose nearest points are so near. Where
// the depth that iterations find may be far off, the bounding volumes are asked.
bool SurelySeen(const Tables& t, const Scratch& s, int l, int index, double dist,
                const double* pos1, const double* mat1, const double* pos2, const double* mat2) {
  const Pair& pair = t.pair[index];
  if (pair.all_seen) return true;
  const GeomBounds &bounds1 = t.bounds[pair.geom1], &bounds2 = t.bounds[pair.geom2];
  double size = bounds2.radius;
  for (int i = 0; i < 3; ++i) {
    size += fabs(pos2[i]) + (pair.plane ? 0 : fabs(pos1[i]) + bounds1.half[i]);
  }
  if (dist > pair.exact) {
    return dist < At(LimitOf(t, s, PairLimit::kSeen, index), l) - pair.rounding * size;
  }
  const double depth = At(LimitOf(t, s, PairLimit::kOverlap, index), l) + pair.rounding * size;
  return BoundsOverlap({bounds1, pos1, mat1}, {bounds2, pos2, mat2}, depth, pair.swept);
}

// Appends a touch that MuJoCo sees.
void AppendSeen(const Tables& t, Scratch& s, unsigned hit, int pair, const Touch& touch) {
  Contacts& c = s.contacts;
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

}  // namespace

void Append(const Tables& t, Scratch& s, unsigned hit, int pair, const Touch& touch) {
  const unsigned in_reach = hit;
  hit &= Bits(touch.dist < LimitOf(t, s, PairLimit::kMargin, pair));
  if (t.sensors.contacts) s.redo |= in_reach & ~hit;
  if (hit == 0) return;
  s.contacts.touching |= hit;
  s.contacts.seen |= hit & SeenIn(t, s, pair, touch);
  AppendSeen(t, s, hit, pair, touch);
}

void CollideOther(const Tables& t, Scratch& s, int index, unsigned near) {
  const Pair& pair = t.pair[index];
  const Lane* pos[2] = {s.geom_xpos + 3 * pair.geom1, s.geom_xpos + 3 * pair.geom2};
  const Lane* mat[2] = {s.geom_xmat + 9 * pair.geom1, s.geom_xmat + 9 * pair.geom2};
  near &= ~s.redo;
  near &= ~BoxesApart(t, s, pair);
  for (unsigned lanes = near; lanes != 0; lanes &= lanes - 1) {
    const int l = __builtin_ctz(lanes);
    double x[2][3], m[2][9];
    for (int g = 0; g < 2; ++g) {
      for (int i = 0; i < 3; ++i) x[g][i] = At(pos[g][i], l);
      for (int i = 0; i < 9; ++i) m[g][i] = At(mat[g][i], l);
    }
    ContactPoint points[kMaxPointsOfPair];
    const NarrowPhaseCall& call = s.narrow_phase;
    const int count = call.collide(call.self, l, index, x[0], m[0], x[1], m[1], points);
    if (count < 0) s.redo |= 1u << l;
    const double margin = At(LimitOf(t, s, PairLimit::kMargin, index), l);
    double nearest = margin;
    for (int k = 0; k < count; ++k) {
      if (points[k].dist < nearest) nearest = points[k].dist;
    }
    if (nearest < margin && !SurelySeen(t, s, l, index, nearest, x[0], m[0], x[1], m[1])) {
      s.contacts.uncertain |= 1u << l;
    }
    for (int k = 0; k < count; ++k) {
      const ContactPoint& point = points[k];
      if (!(point.dist < margin)) {
        if (t.sensors.contacts) s.redo |= 1u << l;
        continue;
      }
      Touch touch;
      touch.dist = Splat(point.dist);
      for (int i = 0; i < 3; ++i) {
        touch.pos[i] = Splat(point.pos[i]);
        touch.normal[i] = Splat(point.normal[i]);
        touch.tangent[i] = Splat(point.tangent[i]);
      }
      AppendSeen(t, s, 1u << l, index, touch);
    }
  }
}

namespace {

// Whether MuJoCo lists in a lane what lanes have found. It is not asked where environments have
// numbers of their own.
bool ListsTheSame(const Tables& t, const Scratch& s, int l) {
  if (t.varied != 0) return false;
  const NarrowPhaseCall& call = s.narrow_phase;
  const Positions to = call.positions(call.self);
  for (int i = 0; i < t.nq; ++i) to.qpos[i] = At(s.qpos[i], l);
  for (int i = 0; i < 3 * t.nmocap; ++i) to.mocap_pos[i] = At(s.mocap_pos[i], l);
  for (int i = 0; i < 4 * t.nmocap; ++i) to.mocap_quat[i] = At(s.mocap_quat[i], l);
  const ListedContact* listed = nullptr;
  const Contacts& c = s.contacts;
  if (call.list(call.self, l, &listed) != c.count[l]) return false;
  for (int k = 0; k < c.count[l]; ++k) {
    const Pair& pair = t.pair[c.pair[k][l]];
    bool same = listed[k].geom1 == pair.geom1 && listed[k].geom2 == pair.geom2 &&
                listed[k].dist == At(c.dist[k], l);
    for (int i = 0; i < 3; ++i) {
      same = same && listed[k].pos[i] == At(c.pos[3 * k + i], l) &&
             listed[k].normal[i] == At(c.frame[9 * k + i], l);
    }
    if (!same) return false;
  }
  return true;
}

}  // namespace

void Collide(const Tables& t, Scratch& s) {
  Contacts& c = s.contacts;
  for (int l = 0; l < kWidth; ++l) c.count[l] = 0;
  c.uncertain = 0;
  for (int k = 0; k < t.num_pairs; ++k) {
    const unsigned near = Near(t, s, k);
    if (near == 0) continue;
    c.touching = c.seen = 0;
    CollidePair(t, s, k, near);
    c.uncertain |= c.touching & ~c.seen;
  }
  for (unsigned lanes = c.uncertain & ~s.redo; lanes != 0; lanes &= lanes - 1) {
    const int l = __builtin_ctz(lanes);
    if (!ListsTheSame(t, s, l)) s.redo |= 1u << l;
  }
  c.max_count = 0;
  for (int l = 0; l < kWidth; ++l) {
    if (c.count[l] > c.max_count) c.max_count = c.count[l];
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
