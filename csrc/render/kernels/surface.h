// The colour of what is seen: a shape's light, shadows, texture and mirror image; the sky, its
// haze.
#pragma once

#include "render/kernels/lighting.h"
#include "render/kernels/shadows.h"
#include "render/kernels/textures.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

/// A picture with what is computed once for all its pixels.
struct Canvas : Picture {
  Shadows* shadows;   // per light
  GridLight* grids;   // per shape
  float sky_level;    // which of the sky's smaller copies is seen
  float clear_depth;  // as far as no plane is in haze or behind the sky
};

/// Sixteen places in a view at which one shape is seen.
struct Places {
  Wide x, y, depth;
  WideInt triangle;
  Mask mask;
  bool are_middles = false;  // of a block's pixels
};

/// A mesh's triangles at some places: weights of their corners, and normal.
struct OnMesh {
  WideInt base;  // of the triangles' numbers, counted in lanes
  WideInt lane;
  Wide weight[3];
};

WIDE Wide3 CornerOf(const float* values, const OnMesh& m, int corner) {
  const WideInt at = m.base * 144 + m.lane + corner * 48;
  return {Gather(values, at), Gather(values, at + 16), Gather(values, at + 32)};
}

inline OnMesh FindOnMesh(const Triangles& mesh, WideInt triangle, const Wide3& at) {
  OnMesh m{triangle >> 4, triangle & 15, {}};
  const Wide3 a = CornerOf(mesh.corners, m, 0);
  const Wide3 e1 = CornerOf(mesh.corners, m, 1) - a, e2 = CornerOf(mesh.corners, m, 2) - a;
  const Wide3 q = at - a, normal = Cross(e1, e2);
  const Wide k = 1.0F / Max(Dot(normal, normal), 1e-30F);
  m.weight[1] = Clamp(Dot(Cross(q, e2), normal) * k, 0.0F, 1.0F);
  m.weight[2] = Clamp(Dot(Cross(e1, q), normal) * k, 0.0F, 1.0F);
  m.weight[0] = 1.0F - m.weight[1] - m.weight[2];
  return m;
}

inline Wide3 MeshNormal(const Triangles& mesh, const OnMesh& m) {
  Wide3 n = CornerOf(mesh.normals, m, 0) * m.weight[0];
  n = n + CornerOf(mesh.normals, m, 1) * m.weight[1] + CornerOf(mesh.normals, m, 2) * m.weight[2];
  return Unit(n);
}

/// How far a coordinate moves from pixel to pixel, at most: of neighbours in the mask.
inline float Step(Wide u, Wide v, uint32_t mask) {
  constexpr uint32_t kInner = 0x7777;  // pixels with a neighbour to the right
  const uint32_t right = mask & (mask >> 1) & kInner, below = mask & (mask >> 4);
  float most = 0;
  for (const int step : {1, 4}) {
    const uint32_t pairs = step == 1 ? right : below;
    if (pairs == 0) continue;
    const int i = First(pairs);
    const float du = u[i + step] - u[i], dv = v[i + step] - v[i];
    const float length = du * du + dv * dv;
    most = length > most ? length : most;
  }
  return __builtin_sqrtf(most);
}

/// The same for a plane, by its geometry, in texels.
inline float PlaneStep(const Shape& s, const View& v, const LocalView& local, const Rays& rays,
                       const Places& at, int lane) {
  const float z = rays.direction.z[lane], depth = at.depth[lane];
  float most = 0;
  for (const bool is_x : {true, false}) {
    const Float3 g = is_x ? local.right * v.pixel_x : local.up * v.pixel_y;
    const float t = v.is_orthographic ? 1 : depth;
    const float dt = -t * g.z / z;
    const float du = (t * g.x + dt * rays.direction.x[lane]) * s.u[0];
    const float dv = (t * g.y + dt * rays.direction.y[lane]) * s.v[0];
    const float w = static_cast<float>(s.texture->levels[0].width) * du;
    const float h = static_cast<float>(s.texture->levels[0].height) * dv;
    const float length = w * w + h * h;
    most = length > most ? length : most;
  }
  return __builtin_sqrtf(most);
}

inline Wide3 CubeTexture(const Shape& s, const View& v, const Wide3& at, Wide depth, int lane) {
  Wide3 q = at;
  if (s.form == Form::kCapsule) {  // MuJoCo's half spheres have coordinates of their own
    const Wide over = Abs(at.z) - s.size.z, end = Pick(at.z > 0.0F, s.size.z, -s.size.z);
    q.z = Pick(over > 0.0F, end * (1.0F + over * (1 / s.size.x)), at.z);
  }
  q = Times(q, s.cube);
  if (s.form == Form::kPlane) q.z = 1e-20F;  // not zero: its middle has a direction, too
  const float x = Abs(q.x)[lane], y = Abs(q.y)[lane], z = Abs(q.z)[lane];
  const float longest = x > y ? (x > z ? x : z) : (y > z ? y : z);
  const float scale = s.cube.x < s.cube.z ? s.cube.z : s.cube.x;
  const float pixel = v.pixel_x * (v.is_orthographic ? 1 : depth[lane]) * scale;
  const float texels = 0.5F * static_cast<float>(s.texture->levels[0].width) * pixel;
  return SampleCube(*s.texture, q, Log2(texels / (longest > 1e-6F ? longest : 1e-6F) + 1e-6F));
}

/// u and v of a box's faces, each of which has the whole texture.
inline void BoxCoordinates(const Shape& s, const Wide3& at, Wide& u, Wide& v) {
  const Wide3 n = NormalAt(s, at);
  const Wide3 q{at.x * (1 / s.size.x), at.y * (1 / s.size.y), at.z * (1 / s.size.z)};
  const Mask is_x = Abs(n.x) > 0.5F, is_z = Abs(n.z) > 0.5F;
  const Mask is_flipped = n.x + n.z - n.y < 0.0F;  // left, bottom and back
  const Wide a = Pick(is_x, q.y, q.x), b = Pick(is_z, q.y, q.z);
  u = Fma(a, 0.5F, 0.5F);
  v = Fma(b, -0.5F, 0.5F);
  (void)is_flipped;  // their rows run the same way
}

inline Wide3 TextureAt(const Shape& s, const View& view, const LocalView& local, const Rays& rays,
                       const Places& p, const Wide3& at, const OnMesh& on_mesh,
                       const Triangles* mesh) {
  const uint32_t mask = Bits(p.mask);
  const int lane = (mask >> 10 & 1U) != 0 ? 10 : First(mask);
  if (s.mapping == Mapping::kCube) return CubeTexture(s, view, at, p.depth, lane);
  Wide u = Fma(at.x, s.u[0], s.u[1]), v = Fma(at.y, s.v[0], s.v[1]);
  if (s.form == Form::kPlane) {
    return SampleFlat(*s.texture, u, v, Log2(PlaneStep(s, view, local, rays, p, lane) + 1e-6F));
  }
  if (s.mapping == Mapping::kBox) {
    BoxCoordinates(s, at, u, v);
    u = u * s.u[0], v = v * s.v[0];
  } else if (s.mapping == Mapping::kCoordinates) {
    const WideInt first = on_mesh.base * 96 + on_mesh.lane;
    u = 0.0F, v = 0.0F;
    for (int k = 0; k < 3; ++k) {
      u = Fma(Gather(mesh->uvs, first + 32 * k), on_mesh.weight[k], u);
      v = Fma(Gather(mesh->uvs, first + 32 * k + 16), on_mesh.weight[k], v);
    }
    u = u * s.u[0], v = v * s.v[0];
  }
  const auto width = static_cast<float>(s.texture->levels[0].width);
  return SampleFlat(*s.texture, u, v, Log2(Step(u, v, mask) * width + 1e-6F));
}

// What a surface shows: seen by the eye, with shadows; through something transparent or in the
// mirror, without.
enum class Looks { kDirect, kTransparent, kMirrored };

inline Wide3 Surface(const Canvas& c, int index, const View& view, const LocalView& local,
                     const Triangles* mesh, Places p, Looks looks) {
  const Frame& f = *c.frame;
  const Shape& s = f.shapes[index];
  const uint32_t bits = Bits(p.mask);
  const int lane = First(bits);
  p.depth = Pick(p.mask, p.depth, p.depth[lane]);
  const Rays rays = RaysAt(local, p.x, p.y), world = RaysAt(ToWorld(view), p.x, p.y);
  const Wide3 at = Fma(rays.direction, p.depth, rays.origin);
  Points points;
  points.at = Fma(world.direction, p.depth, world.origin);
  OnMesh on_mesh;
  if (mesh != nullptr) {
    p.triangle = Pick(p.mask, p.triangle, WideInt(p.triangle[lane]));
    on_mesh = FindOnMesh(*mesh, p.triangle, at);
    points.normal = Out(s.pose, MeshNormal(*mesh, on_mesh));
  } else if (s.form == Form::kPlane) {
    points.normal = Widen(s.pose.z);
  } else {
    points.normal = Out(s.pose, NormalAt(s, at));
  }
  const GridLight& grid = c.grids[index];
  const bool is_on_grid = looks == Looks::kDirect && grid.tiles != nullptr;
  if (!s.is_unlit && !is_on_grid) points.to_eye = ToEye(view, points.at);
  Wide3 color;
  if (s.is_unlit) {
    color = Widen(s.color);
  } else if (looks != Looks::kDirect) {
    color = LightOf(f, s, points, kAllLights, looks == Looks::kMirrored ? f.reflectance : 1);
  } else {
    Halves halves;
    if (is_on_grid) halves = HalvesOf(HalfAt(s, at.x, at.y), p.mask);
    const auto light = [&](int pass) {
      return is_on_grid ? GridLightOf(grid, f, s, points.at, at.x, at.y, halves, pass)
                        : LightOf(f, s, points, pass, 1);
    };
    color = light(kUnshadowed);
    for (int k = 0; k < f.num_lights; ++k) {
      if (!f.lights[k].casts_shadow) continue;
      const Wide left = LightLeft(f, f.lights[k], c.shadows[k], index, points.at, p.mask);
      if (Any(p.mask & (left > 0.0F))) color = Fma(light(k), left, color);
    }
  }
  if (s.mapping != Mapping::kNone) {
    color = Times(color, TextureAt(s, view, local, rays, p, at, on_mesh, mesh));
  }
  return color;
}

inline float SkyLevel(const Frame& f) {
  if (f.sky == nullptr) return 0;
  const float pixel =
      f.view.is_orthographic ? f.view.pixel_x / (kSkyRadius * f.view.far) : f.view.pixel_x;
  return Log2(0.5F * static_cast<float>(f.sky->levels[0].width) * pixel + 1e-6F);
}

inline float ClearDepth(const Frame& f) {
  const View& v = f.view;
  if (v.is_orthographic) return 0;
  const auto longest = [](float from, float to) { return from * from > to * to ? from : to; };
  const float x = longest(v.left, v.left + v.pixel_x * static_cast<float>(f.width));
  const float y = longest(v.top, v.top + v.pixel_y * static_cast<float>(f.height));
  const float hazy = f.haze.plane < 0 ? 0 : f.haze.radius < 1 ? f.haze.radius : 1;
  // a ray's direction is as long as a corner's at most; see WithHaze and IsBehindSky
  return 0.999F * kSkyRadius * v.far * (1 - hazy) / __builtin_sqrtf(1 + x * x + y * y);
}

/// The sky where no shape is.
inline Wide3 Sky(const Canvas& c, Wide x, Wide y) {
  const Frame& f = *c.frame;
  if (f.sky == nullptr) return {0.0F, 0.0F, 0.0F};
  Rays r = RaysAt(ToWorld(f.view), x, y);
  Wide3 d = r.direction;
  if (f.view.is_orthographic) d = Fma(d, kSkyRadius * f.view.far, r.origin);
  return SampleCube(*f.sky, {d.x, d.z, -d.y}, c.sky_level);
}

/// The sky in a block's places, of the last picture if it has it.
inline Wide3 SkyAt(const Canvas& c, int block, const Places& at) {
  const SkyColors& known = c.frame->sky_colors;
  if (!at.are_middles || known.colors == nullptr) return Sky(c, at.x, at.y);
  float* p = known.colors + static_cast<ptrdiff_t>(block) * 3 * kLanes;
  if (known.is_known[block] != 0) return {Load(p), Load(p + kLanes), Load(p + 2 * kLanes)};
  const Wide3 color = Sky(c, at.x, at.y);
  Store(p, color.x), Store(p + kLanes, color.y), Store(p + 2 * kLanes, color.z);
  known.is_known[block] = 1;
  return color;
}

/// How much haze covers the sky and the infinite plane near its horizon: 0 to 1.
inline Wide HazeAt(const Canvas& c, Wide x, Wide y) {
  const Haze& h = c.frame->haze;
  const Rays r = RaysAt(c.local[h.plane], x, y);
  const Wide square = r.direction.x * r.direction.x + r.direction.y * r.direction.y;
  const Wide low = r.direction.z * (h.scale * (1 - h.radius));
  const Mask near_horizon = (r.direction.z < 0.0F) & (low * low < square * 1.001F);
  if (h.radius < 1 && !Any(near_horizon)) return 0.0F;
  const Wide flat = Sqrt(square);
  const Wide q = -r.direction.z * h.scale / flat;
  const Wide z = 1.0F - q / Fma(q, h.radius, 1.0F);
  const Wide alpha = Pick(z < h.bend, z * (1 / h.bend), (1.0F - z) * (1 / (1 - h.bend)));
  return Pick((q > 0.0F) & (z > 0.0F), alpha, 0.0F);
}

inline Wide3 WithHaze(const Canvas& c, const Wide3& color, Wide x, Wide y) {
  const Haze& h = c.frame->haze;
  return h.plane < 0 ? color : Mix(Clamp01(color), Widen(h.color), HazeAt(c, x, y));
}

/// Where MuJoCo's sky, a cylinder around the camera, is before a shape at such depths.
inline Mask IsBehindSky(const Frame& f, const Places& p) {
  const float radius = kSkyRadius * f.view.far;
  const Rays r = RaysAt(ToWorld(f.view), p.x, p.y);
  const Wide3 at = Fma(r.direction, p.depth, r.origin);
  return (at.x * at.x + at.y * at.y > radius * radius) | (Abs(at.z) > radius);
}

inline Wide3 WithFog(const Frame& f, const Wide3& color, Wide depth) {
  if (!f.fog.on) return color;
  const Wide clear = Clamp((f.fog.end - depth) * (1 / (f.fog.end - f.fog.start)), 0.0F, 1.0F);
  return Mix(Widen(f.fog.color), color, clear);
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
