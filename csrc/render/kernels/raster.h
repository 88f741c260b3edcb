// Meshes, triangle by triangle: sixteen are set up at once, then each is tested against the samples
// that it may cover.
#pragma once

#include "render/kernels/picture.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

constexpr float kCoarseCell = 1.2F;  // pixels by which a mesh's corners may be off

constexpr float kSlack = 1e-4F;  // of a triangle's height, by which it is too large: no cracks

/// A patch is sixteen samples: 4x4 pixels of one, 2x2 of four or one of sixteen.
struct Patches {
  int shift;    // its side is 1 << shift pixels
  int columns;  // of samples in a pixel, evenly spaced
  Wide x, y;    // of its samples, in pixels from its corner
};

WIDE Patches PatchesOf(int samples) {
  const Samples s = SamplesOf(samples);
  const int shift = samples == 1 ? 2 : samples == 4 ? 1 : 0;
  Patches p{shift, samples, 0.0F, 0.0F};
  for (int lane = 0; lane < kLanes; ++lane) {
    const int pixel = lane / samples, sample = lane % samples;
    p.x.Set(lane, static_cast<float>(pixel & ((1 << shift) - 1)) + s.x[sample]);
    p.y.Set(lane, static_cast<float>(pixel >> shift) + s.y[sample]);
  }
  return p;
}

/// From a shape's axes to pixels: (u, v) / w, depth z.
struct Projection {
  Float3 u, v, w, z;
  float u0, v0, w0, z0;
  float front;  // the sign of front faces' determinants
  bool is_orthographic;
  float near, far;
  int width, height;
};

WIDE Projection Project(const View& view, const LocalView& local, int width, int height) {
  Projection p{};
  const float kx = 1 / view.pixel_x, ky = 1 / view.pixel_y;
  p.is_orthographic = view.is_orthographic;
  p.z = local.ahead, p.z0 = -Dot(local.eye, local.ahead);
  p.u = local.right * kx, p.v = local.up * ky;
  if (p.is_orthographic) {
    p.w = {0, 0, 0}, p.w0 = 1;
  } else {
    p.w = p.z, p.w0 = p.z0;
    p.u = p.u - local.ahead * (view.left * kx), p.v = p.v - local.ahead * (view.top * ky);
  }
  p.u0 = -Dot(local.eye, p.u), p.v0 = -Dot(local.eye, p.v);
  if (p.is_orthographic) p.u0 -= view.left * kx, p.v0 -= view.top * ky;
  p.front = Dot(Cross(local.right, local.up), local.ahead) * kx * ky > 0 ? -1.0F : 1.0F;
  p.near = view.near, p.far = view.far;
  p.width = width, p.height = height;
  return p;
}

/// The coarsest copy of a mesh that is fine enough for pixels of this size at depth 1.
inline const Triangles& LevelOf(const Shape& s, const LocalView& local, float pixel, float near) {
  const Float3 middle = (s.low + s.high) * 0.5F;
  const float reach = Length(s.high - middle);
  const float z = Dot(middle - local.eye, local.ahead) - reach;
  const float scale = local.is_orthographic ? 1 : z > near ? z : near;
  int level = 0;
  while (level + 1 < s.num_levels && s.levels[level + 1].cell <= kCoarseCell * pixel * scale) {
    ++level;
  }
  return s.levels[level];
}

/// Sixteen triangles' edges, as functions of a sample's place: a x + b y + c, not negative inside.
struct Edges {
  alignas(64) float a[3][kLanes], b[3][kLanes], c[3][kLanes];
  alignas(64) float depth_a[kLanes], depth_b[kLanes], depth_c[kLanes];  // 1 / depth; or depth
  alignas(64) float x[kLanes], y[kLanes];  // the pixel from which a and b count
  alignas(64) float slack[kLanes];         // kSlack times what the three sum up to, by 1 / depth
  alignas(64) int x0[kLanes], x1[kLanes], y0[kLanes], y1[kLanes];  // patches, inclusive
};

/// Sets up a group; returns which triangles may cover a sample.
WIDE uint32_t SetUp(const Projection& p, const Patches& patches, const float* corners, bool cull,
                    Edges& edges) {
  Wide3 at[3];
  Wide z[3];
  for (int k = 0; k < 3; ++k) {
    const Wide3 q{Load(corners + 48 * k), Load(corners + 48 * k + 16), Load(corners + 48 * k + 32)};
    const auto row = [&](Float3 r, float r0) {
      return Fma(q.x, r.x, Fma(q.y, r.y, Fma(q.z, r.z, r0)));
    };
    z[k] = row(p.z, p.z0);
    at[k] = {row(p.u, p.u0), row(p.v, p.v0), p.is_orthographic ? Wide(1.0F) : z[k]};
  }
  Mask open = (Max(Max(z[0], z[1]), z[2]) > p.near) & (Min(Min(z[0], z[1]), z[2]) < p.far);
  if (!Any(open)) return 0;
  // between which samples its corners lie; if one is behind the eye, anywhere
  const Mask before = Min(Min(at[0].z, at[1].z), at[2].z) > 1e-6F;
  const auto bounds = [&](Wide a, Wide b, Wide c, int size, int* first, int* last) {
    const float columns = static_cast<float>(patches.columns);
    const Wide low = Pick(before, Min(Min(a, b), c), 0.0F);
    const Wide high = Pick(before, Max(Max(a, b), c), static_cast<float>(size));
    const Wide end = static_cast<float>(size) * columns;
    const Wide low_column = Clamp(-Floor(0.5F - low * columns), 0.0F, end);
    const Wide high_column = Clamp(Floor(high * columns - 0.5F), -1.0F, end - 1.0F);
    open &= low_column <= high_column;
    const float k = 1.0F / (columns * static_cast<float>(1 << patches.shift));
    Store(first, Truncate(low_column * k));
    Store(last, Truncate(Max(high_column, 0.0F) * k));
  };
  const Wide w[3] = {1.0F / at[0].z, 1.0F / at[1].z, 1.0F / at[2].z};
  const Wide left = at[0].x * w[0], top = at[0].y * w[0];
  bounds(left, at[1].x * w[1], at[2].x * w[2], p.width, edges.x0, edges.x1);
  bounds(top, at[1].y * w[1], at[2].y * w[2], p.height, edges.y0, edges.y1);
  if (!Any(open)) return 0;
  // from here on, pixels are counted from the first corner's: small triangles stay exact
  const Wide x = Pick(before, Floor(left), 0.0F), y = Pick(before, Floor(top), 0.0F);
  Store(edges.x, x), Store(edges.y, y);
  for (Wide3& corner : at) {
    corner.x = Fma(-x, corner.z, corner.x), corner.y = Fma(-y, corner.z, corner.y);
  }
  Wide3 e[3] = {Cross(at[1], at[2]), Cross(at[2], at[0]), Cross(at[0], at[1])};
  Wide whole = Dot(at[0], Cross(at[1] - at[0], at[2] - at[0])) * p.front;
  Wide sign = p.front;
  if (!cull) sign = Pick(whole > 0.0F, sign, -sign), whole = Abs(whole);
  open &= whole > 0.0F;
  if (!Any(open)) return 0;
  Store(edges.slack, whole * -kSlack);
  const Wide scale = 1.0F / whole;
  Wide3 depth{0.0F, 0.0F, 0.0F};
  for (int k = 0; k < 3; ++k) {
    e[k] = e[k] * sign;
    Store(edges.a[k], e[k].x), Store(edges.b[k], e[k].y), Store(edges.c[k], e[k].z);
    depth = depth + (p.is_orthographic ? e[k] * z[k] : e[k]);
  }
  Store(edges.depth_a, depth.x * scale), Store(edges.depth_b, depth.y * scale);
  Store(edges.depth_c, depth.z * scale);
  return Bits(open);
}

/// Calls write(x, y, mask, depth, triangle) for each patch (x, y) and triangle that meet.
template <class F>
WIDE void Rasterize(const Triangles& mesh, const Projection& p, const Patches& patches, bool cull,
                    const F& write) {
  Edges e;
  const auto side = static_cast<float>(1 << patches.shift);
  for (int group = 0; group < mesh.num_groups; ++group) {
    uint32_t open = SetUp(p, patches, mesh.corners + static_cast<ptrdiff_t>(group) * 144, cull, e);
    for (; open != 0; open &= open - 1) {
      const int i = First(open);
      for (int py = e.y0[i]; py <= e.y1[i]; ++py) {
        const Wide y = patches.y + (static_cast<float>(py) * side - e.y[i]);
        const Wide e0 = Fma(y, e.b[0][i], e.c[0][i]), e1 = Fma(y, e.b[1][i], e.c[1][i]);
        const Wide e2 = Fma(y, e.b[2][i], e.c[2][i]);
        const Wide q = Fma(y, e.depth_b[i], e.depth_c[i]);
        for (int px = e.x0[i]; px <= e.x1[i]; ++px) {
          const Wide x = patches.x + (static_cast<float>(px) * side - e.x[i]);
          const Wide inside =
              Min(Min(Fma(x, e.a[0][i], e0), Fma(x, e.a[1][i], e1)), Fma(x, e.a[2][i], e2));
          Wide depth = Fma(x, e.depth_a[i], q);
          const Wide whole = p.is_orthographic ? Wide(1.0F) : depth;
          Mask mask = inside >= whole * e.slack[i];
          if (!Any(mask)) continue;
          if (!p.is_orthographic) depth = 1.0F / depth;
          mask &= (depth > p.near) & (depth < p.far);
          write(px, py, mask, depth, group * kLanes + i);
        }
      }
    }
  }
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
