// Who stands in a light's way: shapes with a formula by rays, behind circles in the light's view;
// planes by rays, too, of points on their other side; meshes by maps of depths from the light.
#pragma once

#include "render/kernels/raster.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

// of what is too near to be seen: how far off two planes are in one place, and how deep within a
// transparent shape a point is in its shadow
constexpr float kSamePlane = 0.01F;
constexpr float kWithin = 0.25F;

/// A shape as a light sees it, within a circle: in metres, or at distance 1 from a spot.
struct Caster {
  int shape;
  float x, y, radius;
};

/// A plane that a light is before: where normal * p > at.
struct PlaneCaster {
  int shape;
  Float3 normal;
  float at;
};

/// The shadows of one light.
struct Shadows {
  PlaneCaster* planes = nullptr;
  int num_planes = 0;
  Caster* casters = nullptr;
  int num_casters = 0;
  Float3 low{kFar, kFar, 0}, high{-kFar, -kFar, 0};  // around all
  // of meshes' far sides: near ones would shade themselves; null: there are none. In blocks of 4x4
  float* depths = nullptr;
  // of the near sides of those that have no far one, or within which others are seen
  float* sheets = nullptr;
  int blocks = 0;  // a side
  View view;
};

WIDE Wide3 InLight(const Light& l, const Wide3& world) {
  const Wide3 q = world - l.position;
  const Wide z = Dot(q, l.direction);
  const Wide k = l.is_directional ? Wide(1.0F) : 1.0F / z;
  return {Dot(q, l.right) * k, Dot(q, l.up) * k, z};
}

/// A circle around a shape in a light's view.
inline Caster Around(const Light& l, const Shape& s, int index) {
  Float3 center = s.pose.position;
  float radius = Length(s.size);
  if (s.form == Form::kSphere) radius = s.size.x;
  if (s.form == Form::kCapsule) radius = s.size.x + s.size.z;
  if (s.form == Form::kMesh) {
    center = center + Out(s.pose, (s.low + s.high) * 0.5F);
    radius = Length(s.high - s.low) * 0.5F;
  }
  const Float3 q = center - l.position;
  const float z = Dot(q, l.direction);
  float x = Dot(q, l.right), y = Dot(q, l.up);
  if (!l.is_directional) {
    if (z < 2 * radius) return {index, 0, 0, kFar};  // near the lamp: anywhere
    x /= z, y /= z;
    const float far = (x < 0 ? -x : x) > (y < 0 ? -y : y) ? (x < 0 ? -x : x) : (y < 0 ? -y : y);
    radius *= (1 + far) / (z - radius);
  }
  return {index, x, y, radius};
}

inline PlaneCaster Behind(const Light& l, const Shape& s, int index) {
  const Float3 to = l.is_directional ? l.direction * -1.0F : l.position - s.pose.position;
  const Float3 normal = s.pose.z * (Dot(s.pose.z, to) < 0 ? -1.0F : 1.0F);
  return {index, normal, Dot(normal, s.pose.position)};
}

/// Whether a mesh's near side, too, is between the light and others.
inline bool IsSheet(const Shape& s) {
  return s.form == Form::kMesh && (s.is_open || s.is_transparent);
}

/// Maps the depths of meshes from the light.
inline void MapMeshes(const Frame& f, const Light& l, Float3 low, Float3 high, Shadows& out,
                      Arena& arena) {
  const auto within = [&](float a) { return a < -l.clip ? -l.clip : a > l.clip ? l.clip : a; };
  low = {within(low.x), within(low.y), 0}, high = {within(high.x), within(high.y), 0};
  if (low.x >= high.x || low.y >= high.y) return;
  const int longer = f.width > f.height ? f.width : f.height;
  const int size = (longer < 80 ? 64 : longer > 640 ? 512 : longer * 4 / 5) / kBlock * kBlock;
  out.blocks = size / kBlock;
  out.view.eye = {l.position, l.right, l.up, l.direction};
  out.view.is_orthographic = l.is_directional;
  out.view.left = low.x, out.view.top = high.y;
  out.view.pixel_x = (high.x - low.x) / static_cast<float>(size);
  out.view.pixel_y = (low.y - high.y) / static_cast<float>(size);
  out.view.near = f.view.near, out.view.far = f.view.far;
  const auto count = static_cast<size_t>(size) * size;
  const auto empty = [&] {
    auto* depths = arena.Take<float>(count);
    for (size_t i = 0; i < count; i += kLanes) Store(depths + i, kFar);
    return depths;
  };
  out.depths = empty();
  const Patches patches = PatchesOf(1);
  const float pixel = out.view.pixel_x > -out.view.pixel_y ? out.view.pixel_x : -out.view.pixel_y;
  for (int k = 0; k < out.num_casters; ++k) {
    const Shape& s = f.shapes[out.casters[k].shape];
    if (s.form != Form::kMesh) continue;
    const LocalView local = ToLocal(out.view, s);
    Projection p = Project(out.view, local, size, size);
    const auto map = [&](float* depths) {
      Rasterize(LevelOf(s, local, pixel, out.view.near), p, patches, true,
                [&](int x, int y, Mask mask, Wide depth, int) {
                  float* at = depths + static_cast<ptrdiff_t>(y * out.blocks + x) * kLanes;
                  Store(at, Pick(mask, Min(depth, Load(at)), Load(at)));
                });
    };
    if (IsSheet(s)) {
      if (out.sheets == nullptr) out.sheets = empty();
      map(out.sheets);
    }
    p.front = -p.front;
    map(out.depths);
  }
}

inline Shadows ShadowsOf(const Frame& f, const Light& l, Arena& arena) {
  Shadows out;
  out.casters = arena.Take<Caster>(f.num_shapes);
  out.planes = arena.Take<PlaneCaster>(f.num_shapes);
  Float3 low{kFar, kFar, 0}, high{-kFar, -kFar, 0};  // around meshes
  for (int i = 0; i < f.num_shapes; ++i) {
    if (!f.shapes[i].casts_shadow) continue;
    if (f.shapes[i].form == Form::kPlane) {
      out.planes[out.num_planes++] = Behind(l, f.shapes[i], i);
      continue;
    }
    const Caster c = Around(l, f.shapes[i], i);
    out.casters[out.num_casters++] = c;
    const auto grow = [&](Float3& lowest, Float3& highest) {
      lowest.x = c.x - c.radius < lowest.x ? c.x - c.radius : lowest.x;
      lowest.y = c.y - c.radius < lowest.y ? c.y - c.radius : lowest.y;
      highest.x = c.x + c.radius > highest.x ? c.x + c.radius : highest.x;
      highest.y = c.y + c.radius > highest.y ? c.y + c.radius : highest.y;
    };
    grow(out.low, out.high);
    if (f.shapes[i].form == Form::kMesh) grow(low, high);
  }
  if (low.x < high.x) MapMeshes(f, l, low, high, out, arena);
  return out;
}

/// How much of the light meshes leave: of a map's four depths around each point.
inline Wide LeftByMeshes(const Shadows& s, const float* depths, const Wide3& in_light) {
  const View& v = s.view;
  const auto size = static_cast<float>(s.blocks * kBlock);
  const Wide x = (in_light.x - v.left) * (1 / v.pixel_x),
             y = (in_light.y - v.top) * (1 / v.pixel_y);
  const Mask within = (x > 0.0F) & (y > 0.0F) & (x < size) & (y < size);
  if (!Any(within)) return 1.0F;
  const float texel = v.pixel_x > -v.pixel_y ? v.pixel_x : -v.pixel_y;
  const Wide bias = v.is_orthographic ? Wide(texel) : in_light.z * texel;
  const Wide left = Floor(x - 0.5F), top = Floor(y - 0.5F);
  const auto lit = [&](Wide column, Wide row) {
    const WideInt i = Truncate(Clamp(column, 0.0F, size - 1)),
                  j = Truncate(Clamp(row, 0.0F, size - 1));
    const WideInt at = (((j >> 2) * s.blocks + (i >> 2)) << 4) + ((j & 3) << 2) + (i & 3);
    return Pick(in_light.z > Gather(depths, at) + bias, 0.0F, 1.0F);
  };
  const Wide fx = x - 0.5F - left, fy = y - 0.5F - top;
  const Wide a = lit(left, top), b = lit(left, top + 1.0F);
  const Wide above = Fma(lit(left + 1.0F, top) - a, fx, a);
  const Wide below = Fma(lit(left + 1.0F, top + 1.0F) - b, fx, b);
  return Pick(within, Fma(below - above, fy, above), 1.0F);
}

/// How much of a light reaches points of a shape: 0 in shadow.
inline Wide LightLeft(const Frame& f, const Light& l, const Shadows& shadows, int self,
                      const Wide3& world, Mask mask) {
  const Wide3 q = InLight(l, world);
  Mask open = mask & (q.z > f.view.near) & (Abs(q.x) < l.clip) & (Abs(q.y) < l.clip);
  Mask dark = None();
  const auto cast = [&](const Shape& s, Mask near) {
    const Wide3 origin = In(s.pose, world - s.pose.position);
    const Wide3 to = l.is_directional ? Widen(In(s.pose, l.direction) * -1.0F)
                                      : Widen(In(s.pose, l.position - s.pose.position)) - origin;
    const Wide t = CastAny(s, {origin, to}, 0);
    // nearer to the light than this, nothing is in its picture
    const Wide first = l.is_directional ? Wide(f.view.near) : f.view.near / q.z;
    const Wide whole = l.is_directional ? q.z : Wide(1.0F);
    dark |= near & (t > 0.0F) & (t < whole - first);
    if (!s.is_transparent) return;
    // points within it, which are seen, are behind where light enters
    const Wide from_light = CastAny(s, {Fma(to, whole, origin), to * -1.0F}, 0);
    dark |= near & (from_light > first) & (from_light < whole - first * kWithin);
  };
  for (int k = 0; k < shadows.num_planes; ++k) {
    const PlaneCaster& p = shadows.planes[k];
    if (p.shape == self) continue;
    // planes in one place do not shade one another
    const Mask behind = open & (Dot(world, p.normal) < p.at - kSamePlane * f.view.near);
    if (Any(behind)) cast(f.shapes[p.shape], behind);
  }
  open &= (q.x > shadows.low.x) & (q.x < shadows.high.x) & (q.y > shadows.low.y) &
          (q.y < shadows.high.y);
  if (!Any(open)) return Pick(dark, 0.0F, 1.0F);
  for (int k = 0; k < shadows.num_casters; ++k) {
    const Caster& c = shadows.casters[k];
    const Shape& s = f.shapes[c.shape];
    if (c.shape == self || s.form == Form::kMesh) continue;
    const Wide dx = q.x - c.x, dy = q.y - c.y;
    const Mask near = open & ~dark & (dx * dx + dy * dy < c.radius * c.radius);
    if (Any(near)) cast(s, near);
  }
  Wide left = Pick(dark, 0.0F, 1.0F);
  const auto behind_meshes = [&](const float* depths) {
    left = Min(left, Pick(open, LeftByMeshes(shadows, depths, q), 1.0F));
  };
  if (shadows.depths != nullptr) behind_meshes(shadows.depths);
  if (shadows.sheets != nullptr && !IsSheet(f.shapes[self])) behind_meshes(shadows.sheets);
  return left;
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
