// Rays of range finders: mj_ray's distances. Planes are met in all lanes at once; so is what MuJoCo
// would dismiss by a bounding sphere, or is behind what is known already. Its functions are asked
// about the rest, a ray of one lane at a time.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

struct Ray {
  const Lane* from;
  Lane along[3];
  Lane& nearest;  // < 0: nothing is met so far
};

Ray RayOf(Scratch& s, const Sensor& sensor) {
  const Lane* mat = s.site_xmat + 9 * sensor.object.id;
  return {s.site_xpos + 3 * sensor.object.id, {mat[2], mat[5], mat[8]}, s.sensordata[sensor.adr]};
}

Mask IsNearer(Lane x, const Ray& ray) {
  return (x >= 0.0) & ((x < ray.nearest) | (ray.nearest < 0.0));
}

// A ray in a geom's frame: ray_map.
struct LocalRay {
  LocalRay(const Scratch& s, int geom, const Ray& ray) {
    Lane offset[3];
    for (int i = 0; i < 3; ++i) offset[i] = ray.from[i] - s.geom_xpos[3 * geom + i];
    RotateBack(from, s.geom_xmat + 9 * geom, offset);
    RotateBack(along, s.geom_xmat + 9 * geom, ray.along);
  }

  Lane from[3], along[3];
};

// ray_plane.
void MeetPlane(const Scratch& s, int geom, const Ray& ray) {
  const LocalRay local(s, geom, ray);
  const Lane x = -local.from[2] / local.along[2];
  Mask met = (local.along[2] <= -kMinVal) & IsNearer(x, ray);
  if (!Any(met)) return;
  const Lane* size = s.geom_size + 3 * geom;
  for (int i = 0; i < 2; ++i) {
    met = met & ((size[i] <= 0.0) | (Abs(local.from[i] + x * local.along[i]) <= size[i]));
  }
  ray.nearest = Select(met, x, ray.nearest);
}

// The squared radius of the sphere that MuJoCo tries before a shape.
Lane SquaredRadius(RayShape shape, const Lane* size) {
  if (shape == RayShape::kCapsule) return (size[0] + size[1]) * (size[0] + size[1]);
  Lane sum = size[0] * size[0];
  if (shape != RayShape::kSphere) sum = sum + size[1] * size[1];
  if (shape == RayShape::kBox) sum = sum + size[2] * size[2];
  return sum;
}

// Lanes in which a ray may meet what is in a sphere: a x² + 2 b x + c = 0.
unsigned MayMeetSphere(const Ray& ray, const Lane* center, Lane squared) {
  Lane apart[3];
  for (int i = 0; i < 3; ++i) apart[i] = ray.from[i] - center[i];
  const Lane a = Dot3(ray.along, ray.along), b = Dot3(ray.along, apart);
  const Lane c = Dot3(apart, apart) - squared;
  // no solution, or both are surely behind
  Mask missed = (b * b - a * c < 0.0) | ((b > 0.0) & (a * c > 1e-12 * (b * b)));
  if (Bits(missed) == kAllLanes) return 0;
  // or surely beyond what is known: before it, the ray comes nearer, but not to the sphere
  const Lane known = ray.nearest, size = a * known * known + (c + squared);
  missed = missed | ((known >= 0.0) & (c > 0.0) & (-b > a * known) &
                     (a * known * known + 2.0 * b * known + c > 1e-9 * size));
  return ~Bits(missed) & kAllLanes;
}

// Lanes in which a ray may meet a height field before anything else. That its box is behind, or
// beyond what is known, says so only of rays steeper than all triangles: along one, MuJoCo's
// distances are rounded beyond measure.
unsigned MayMeetField(const Scratch& s, const RayTarget& target, const Ray& ray) {
  const LocalRay local(s, target.geom, ray);
  const double high[3] = {target.half[0], target.half[1], target.high};
  const double low[3] = {-target.half[0], -target.half[1], target.low};
  Lane far = Splat(0);
  for (int i = 0; i < 3; ++i) far = far + (Abs(local.from[i]) + (high[i] - low[i]));
  const Lane margin = 1e-6 * far;  // far beyond what is lost by rounding
  Lane begin = Splat(-__builtin_inf()), end = Splat(__builtin_inf());
  for (int i = 0; i < 3; ++i) {
    const Lane inverse = 1.0 / local.along[i];
    const Lane x = (low[i] - margin - local.from[i]) * inverse;
    const Lane y = (high[i] + margin - local.from[i]) * inverse;
    begin = Max(Min(x, y), begin);
    end = Min(Max(x, y), end);
  }
  const Lane level = Abs(local.along[0]) + Abs(local.along[1]);
  const Mask steep = Abs(local.along[2]) > 1e-5 + target.steepest * level;
  const Mask beyond = (end < 0.0) | ((ray.nearest >= 0.0) & (begin > ray.nearest));
  const Mask missed = (begin > end) | (steep & beyond);
  return ~Bits(missed) & kAllLanes;
}

void Ask(Scratch& s, const RayTarget& target, const Ray& ray, unsigned lanes) {
  const NarrowPhaseCall& call = s.narrow_phase;
  for (lanes &= ~s.redo; lanes != 0; lanes &= lanes - 1) {
    const int l = __builtin_ctz(lanes);
    GeomPlace place;
    double from[3], along[3];
    for (int i = 0; i < 3; ++i) {
      from[i] = At(ray.from[i], l);
      along[i] = At(ray.along[i], l);
      place.pos[i] = At(s.geom_xpos[3 * target.geom + i], l);
      place.size[i] = At(s.geom_size[3 * target.geom + i], l);
    }
    for (int i = 0; i < 9; ++i) place.mat[i] = At(s.geom_xmat[9 * target.geom + i], l);
    double& nearest = At(ray.nearest, l);
    const double x = call.cast(call.self, l, target, place, from, along);
    if (x != x) s.redo |= 1u << l;
    if (x >= 0 && (x < nearest || nearest < 0)) nearest = x;
  }
}

void Meet(Scratch& s, const RayTarget& target, const Ray& ray) {
  switch (target.shape) {
    case RayShape::kPlane:
      return MeetPlane(s, target.geom, ray);
    case RayShape::kOther:
      return Ask(s, target, ray, kAllLanes);
    case RayShape::kHeightField:
      return Ask(s, target, ray, MayMeetField(s, target, ray));
    default: {
      const Lane squared = SquaredRadius(target.shape, s.geom_size + 3 * target.geom);
      Ask(s, target, ray, MayMeetSphere(ray, s.geom_xpos + 3 * target.geom, squared));
    }
  }
}

}  // namespace

void CastRays(const Tables& t, Scratch& s) {
  const Sensor* const begin = t.sensors.sensor + t.sensors.first_range;
  const Sensor* const end = t.sensors.sensor + t.sensors.count;
  for (const Sensor* sensor = begin; sensor != end; ++sensor) {
    const Ray ray = RayOf(s, *sensor);
    ray.nearest = Splat(-1);
    // MuJoCo refuses rays of no length
    s.redo |= ~Bits(Dot3(ray.along, ray.along) > 2 * kMinVal * kMinVal) & kAllLanes;
  }
  for (int i = 0; i < t.sensors.num_targets; ++i) {
    const RayTarget& target = t.sensors.target[i];
    for (const Sensor* sensor = begin; sensor != end; ++sensor) {
      if (t.site[sensor->object.id].body == t.geom[target.geom].body) continue;
      Meet(s, target, RayOf(s, *sensor));
    }
  }
  for (const Sensor* sensor = begin; sensor != end; ++sensor) {
    Lane& out = s.sensordata[sensor->adr];
    if (sensor->cutoff > 0) out = CutOff(*sensor, out);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
