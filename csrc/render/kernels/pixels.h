// Colours of blocks of pixels: of what is seen at their middles or, where shapes' edges run, of
// several samples, as multisampling does: one colour per shape, weighted by the samples it covers.
#pragma once

#include "render/kernels/visibility.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

inline Wide3 Mirrored(const Canvas& c, int block, const Places& p) {
  if (c.mirror.only[block] == -1) return {0.0F, 0.0F, 0.0F};
  const Seen seen = c.mirror.At(block);
  Wide3 out{0.0F, 0.0F, 0.0F};
  for (uint32_t left = Bits(p.mask & (seen.shape > WideInt(-1))); left != 0;) {
    const int i = seen.shape[First(left)];
    const Mask is = seen.shape == WideInt(i);
    const Wide3 color =
        Surface(c, i, c.mirror_view, c.mirrored[i], c.mirrored_meshes[i],
                {p.x, p.y, seen.depth, seen.triangle, FromBits(Bits(is) & left)}, Looks::kMirrored);
    out = Pick(is, color, out);
    left &= ~Bits(is);
  }
  return out;
}

/// The colour of a shape, or of the sky (-1), in its places.
inline Wide3 ColorOf(const Canvas& c, int index, int block, const Places& p) {
  const Frame& f = *c.frame;
  const auto sky = [&] { return WithFog(f, SkyAt(c, block, p), kSkyRadius * f.view.far); };
  if (index < 0) {
    if (f.sky == nullptr) return {0.0F, 0.0F, 0.0F};  // not even fog
    return Clamp01(WithHaze(c, sky(), p.x, p.y));
  }
  Wide3 color = Surface(c, index, f.view, c.local[index], c.meshes[index], p, Looks::kDirect);
  if (c.mirror.only != nullptr && index == f.reflector) color = color + Mirrored(c, block, p);
  color = WithFog(f, Clamp01(color), p.depth);
  if (f.shapes[index].form != Form::kPlane || f.sky == nullptr) return color;
  if (!Any(p.mask & (p.depth > c.clear_depth))) return color;
  const Mask behind = p.mask & IsBehindSky(f, p);
  if (Any(behind)) color = Pick(behind, sky(), color);
  return index == f.haze.plane ? WithHaze(c, color, p.x, p.y) : color;
}

/// Whether shapes' edges run through a block, or between it and its neighbours.
inline bool IsEdge(const Canvas& c, int bx, int by) {
  const int block = by * c.blocks_x + bx, only = c.seen.only[block];
  if (only == Middles::kMixed) return true;
  const auto differs = [&](int neighbour, uint32_t lanes) {
    const int other = c.seen.only[neighbour];
    if (other != Middles::kMixed) return other != only;
    return (~Bits(c.seen.shapes[neighbour] == WideInt(only)) & lanes) != 0;
  };
  return (bx > 0 && differs(block - 1, 0x8888)) ||
         (bx + 1 < c.blocks_x && differs(block + 1, 0x1111)) ||
         (by > 0 && differs(block - c.blocks_x, 0xf000)) ||
         (by + 1 < c.blocks_y && differs(block + c.blocks_x, 0x000f));
}

/// A block's samples: of each pixel its first, its second, and so on.
inline void CollectSamples(const Canvas& c, int bx, int by, Seen* out) {
  const Frame& f = *c.frame;
  const Samples samples = SamplesOf(f.samples);
  const int slot = c.sampled[by * c.blocks_x + bx];
  for (int s = 0; s < samples.count; ++s) out[s] = Nothing();
  if (slot >= 0) {
    const auto* floats = reinterpret_cast<const float*>(c.samples + slot);
    const auto* ints = reinterpret_cast<const int*>(floats);
    for (int s = 0; s < samples.count; ++s) {
      const WideInt at = c.sample_at + s;
      out[s] = {Gather(floats, at), Gather(ints, at + kLanes), Gather(ints, at + 2 * kLanes)};
    }
  }
  Wide x[kMaxSamples], y[kMaxSamples];
  for (int s = 0; s < samples.count; ++s) {
    x[s] = c.X(f.view, bx, samples.x[s]), y[s] = c.Y(f.view, by, samples.y[s]);
  }
  for (int i = 0; i < f.num_shapes; ++i) {
    const Shape& shape = f.shapes[i];
    if (!c.rects[i].Has(bx, by) || shape.is_transparent || shape.form == Form::kMesh) continue;
    WithForm(shape.form, [&]<Form kForm>() {
      for (int s = 0; s < samples.count; ++s) {
        const Wide depth = Cast<kForm>(shape, RaysAt(c.local[i], x[s], y[s]), c.local[i].start);
        const Mask nearer = (depth < out[s].depth) & (depth > f.view.near) & (depth < f.view.far);
        Keep(out[s], nearer, depth, i, -1);
      }
    });
  }
}

inline Wide3 ColorOfSamples(const Canvas& c, int bx, int by, const Seen* at) {
  const Frame& f = *c.frame;
  const Samples samples = SamplesOf(f.samples);
  uint32_t left[kMaxSamples];
  for (int s = 0; s < samples.count; ++s) left[s] = kAllBits;
  Wide3 sum{0.0F, 0.0F, 0.0F};
  for (int first = 0; first < samples.count;) {
    if (left[first] == 0) {
      ++first;
      continue;
    }
    const int index = at[first].shape[First(left[first])];
    Wide count = 0.0F, x = 0.0F, y = 0.0F, depth = 0.0F;
    WideInt triangle = -1;
    for (int s = first; s < samples.count; ++s) {
      const Mask is = at[s].shape == WideInt(index);
      left[s] &= ~Bits(is);
      count = Pick(is, count + 1.0F, count), depth = Pick(is, depth + at[s].depth, depth);
      x = Pick(is, x + samples.x[s], x), y = Pick(is, y + samples.y[s], y);
      triangle = Pick(is, at[s].triangle, triangle);
    }
    const Mask seen = count > 0.0F;
    const Wide k = 1.0F / Max(count, 1.0F);
    const Wide3 color =
        ColorOf(c, index, by * c.blocks_x + bx,
                {c.X(f.view, bx, x * k), c.Y(f.view, by, y * k), depth * k, triangle, seen});
    sum = Pick(seen, Fma(color, count, sum), sum);
  }
  return sum * (1.0F / static_cast<float>(samples.count));
}

inline Wide3 ColorOfMiddles(const Canvas& c, int bx, int by) {
  const int block = by * c.blocks_x + bx;
  const Seen seen = c.seen.At(block);
  const Wide x = c.X(c.frame->view, bx, 0.5F), y = c.Y(c.frame->view, by, 0.5F);
  if (const int only = c.seen.only[block]; only != Middles::kMixed) {
    return ColorOf(c, only, block, {x, y, seen.depth, seen.triangle, All(), true});
  }
  Wide3 out{0.0F, 0.0F, 0.0F};
  for (uint32_t left = kAllBits; left != 0;) {
    const int index = seen.shape[First(left)];
    const Mask is = seen.shape == WideInt(index);
    const Wide3 color = ColorOf(c, index, block, {x, y, seen.depth, seen.triangle, is, true});
    out = Pick(is, color, out);
    left &= ~Bits(is);
  }
  return out;
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
