// Transparent shapes over what is behind them. MuJoCo draws them twice, from the nearest to the
// farthest and back, each time mixing them in by their alpha.
#pragma once

#include "render/kernels/pixels.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

constexpr int kKeptLayers = 16;  // over one block; the others are made twice

struct Layer {
  Wide3 color;
  Wide alpha;
};

/// Which of a transparent shape's pixels are before what is behind, at one sample each.
WIDE Mask Before(const Wide& depth, const Wide& behind, const View& v) {
  return (depth < behind) & (depth > v.near) & (depth < v.far);
}

/// One shape over a block; false if it is not there. `behind`: the depths of opaque samples.
inline bool MakeLayer(const Canvas& c, int index, int bx, int by, const Seen* behind, Layer& out) {
  const Frame& f = *c.frame;
  const Shape& s = f.shapes[index];
  const Samples samples = SamplesOf(f.samples);
  Places p{c.X(f.view, bx, 0.5F), c.Y(f.view, by, 0.5F), 0.0F, -1, None()};
  Wide count = 0.0F;
  if (s.form == Form::kMesh) {
    const Seen seen = c.layers[index].At(by * c.blocks_x + bx);
    p.depth = seen.depth, p.triangle = seen.triangle;
    for (int k = 0; k < samples.count; ++k) {
      count += Pick(Before(seen.depth, behind[k].depth, f.view), 1.0F, 0.0F);
    }
  } else {
    Wide depth = 0.0F, x = 0.0F, y = 0.0F;
    for (int k = 0; k < samples.count; ++k) {
      const Wide t = CastAny(
          s, RaysAt(c.local[index], c.X(f.view, bx, samples.x[k]), c.Y(f.view, by, samples.y[k])),
          c.local[index].start);
      const Mask is = Before(t, behind[k].depth, f.view);
      count += Pick(is, 1.0F, 0.0F), depth += Pick(is, t, 0.0F);
      x += Pick(is, samples.x[k], 0.0F), y += Pick(is, samples.y[k], 0.0F);
    }
    const Wide k = 1.0F / Max(count, 1.0F);
    p.depth = depth * k, p.x = c.X(f.view, bx, x * k), p.y = c.Y(f.view, by, y * k);
  }
  p.mask = count > 0.0F;
  if (s.form == Form::kPlane && f.sky != nullptr) {
    p.mask &= ~IsBehindSky(f, p);
    if (index == f.haze.plane) p.mask &= HazeAt(c, p.x, p.y) <= 0.0F;
    count = Pick(p.mask, count, 0.0F);
  }
  if (!Any(p.mask)) return false;
  out.color = Surface(c, index, f.view, c.local[index], c.meshes[index], p, Looks::kTransparent);
  out.color = WithFog(f, Clamp01(out.color), p.depth);
  out.alpha = count * (s.alpha / static_cast<float>(samples.count));
  return true;
}

inline Wide3 WithTransparent(const Canvas& c, int bx, int by, const Seen* behind, Wide3 color) {
  const Frame& f = *c.frame;
  Layer layers[kKeptLayers], other;
  const auto make = [&](int k, Layer& out) {
    const int index = f.transparent[k];
    return c.rects[index].Has(bx, by) && MakeLayer(c, index, bx, by, behind, out);
  };
  const auto mix = [&](const Layer& layer) { color = Mix(color, layer.color, layer.alpha); };
  int count = 0, next = 0;
  for (; next < f.num_transparent && count < kKeptLayers; ++next) {
    if (make(next, layers[count])) mix(layers[count++]);
  }
  for (int k = next; k < f.num_transparent; ++k) {
    if (make(k, other)) mix(other);
  }
  for (int k = f.num_transparent; k-- > next;) {
    if (make(k, other)) mix(other);
  }
  while (count > 0) mix(layers[--count]);
  return color;
}

/// Transparent meshes, each in a picture of its own.
inline void DrawLayers(Canvas& c, Arena& arena) {
  const Frame& f = *c.frame;
  c.layers = arena.Take<Middles>(f.num_shapes);
  const Patches patches = PatchesOf(1);
  for (int k = 0; k < f.num_transparent; ++k) {
    const int index = f.transparent[k];
    if (f.shapes[index].form != Form::kMesh) continue;
    Middles& layer = c.layers[index] = Middles::Make(c.num_blocks(), true, arena);
    const Projection p = Project(f.view, c.local[index], f.width, f.height);
    Rasterize(*c.meshes[index], p, patches, f.culls_faces,
              [&](int x, int y, Mask mask, Wide depth, int triangle) {
                const int block = y * c.blocks_x + x;
                layer.Add(block, mask & (depth < layer.Depth(block)), depth, index, triangle);
              });
  }
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
