// Which shape each pixel sees: every shape is drawn over its own rectangle, and the nearest stays.
#pragma once

#include "render/kernels/surface.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

/// Where a shape may be drawn in a block: in which pixels, and how far away at least.
struct May {
  Mask mask;
  Wide nearest;
};

/// Casts one shape at the middles of a rectangle's pixels. `may(block, allowed)`: whether it may be
/// in a block at all.
template <class F>
inline void Scan(const Canvas& c, const View& v, const LocalView& local, const Rect& rect,
                 int index, Middles& target, const F& may) {
  const Shape& s = c.frame->shapes[index];
  WithForm(s.form, [&]<Form kForm>() {
    for (int by = rect.y0; by < rect.y1; ++by) {
      const Wide y = c.Y(v, by, 0.5F);
      for (int bx = rect.x0; bx < rect.x1; ++bx) {
        const int block = by * c.blocks_x + bx;
        May allowed;
        if (!may(block, allowed)) continue;
        const Wide depth = Cast<kForm>(s, RaysAt(local, c.X(v, bx, 0.5F), y), local.start);
        const Mask nearer = allowed.mask & (depth <= target.Depth(block)) &
                            (depth > allowed.nearest) & (depth < v.far);
        target.Add(block, nearer, depth, index);
      }
    }
  });
}

/// Where a patch's sixteen samples are kept: a block's are made when its first triangle comes.
WIDE Seen& SamplesAt(Canvas& c, const Patches& patches, int px, int py) {
  const int samples = c.frame->samples, shift = 2 - patches.shift, low = (1 << shift) - 1;
  int& slot = c.sampled[(py >> shift) * c.blocks_x + (px >> shift)];
  if (slot < 0) {
    slot = c.num_sampled++ * samples;
    for (int s = 0; s < samples; ++s) c.samples[slot + s] = Nothing();
  }
  return c.samples[slot + ((py & low) << shift) + (px & low)];
}

/// Draws one mesh: at its samples, or at pixels' middles if there is one a pixel.
inline void DrawMesh(Canvas& c, int index) {
  const Frame& f = *c.frame;
  const Patches patches = PatchesOf(f.samples);
  const Projection p = Project(f.view, c.local[index], f.width, f.height);
  const bool is_single = f.samples == 1;
  Rasterize(*c.meshes[index], p, patches, f.culls_faces,
            [&](int x, int y, Mask mask, Wide depth, int triangle) {
              if (is_single) {
                const int block = y * c.blocks_x + x;
                c.seen.Add(block, mask & (depth <= c.seen.Depth(block)), depth, index, triangle);
                return;
              }
              Seen& seen = SamplesAt(c, patches, x, y);
              Keep(seen, mask & (depth <= seen.depth), depth, index, triangle);
            });
}

/// Everything that is opaque.
inline void See(Canvas& c) {
  const Frame& f = *c.frame;
  const auto anywhere = [&](int, May& allowed) {
    allowed = {All(), f.view.near};
    return true;
  };
  for (int i = 0; i < f.num_shapes; ++i) {
    if (f.shapes[i].is_transparent) continue;
    if (f.shapes[i].form == Form::kMesh) {
      DrawMesh(c, i);
    } else {
      Scan(c, f.view, c.local[i], c.rects[i], i, c.seen, anywhere);
    }
  }
}

/// What the reflector shows: the same from the mirrored eye, behind the reflector.
inline void SeeMirrored(Canvas& c) {
  const Frame& f = *c.frame;
  const View& v = c.mirror_view;
  const Patches patches = PatchesOf(1);
  const auto behind = [&](int block, May& allowed) {
    if (!c.seen.MaySee(block, f.reflector)) return false;
    allowed = {c.seen.Shape(block) == WideInt(f.reflector), c.seen.Depth(block)};
    return true;
  };
  for (int i = 0; i < f.num_shapes; ++i) {
    const Shape& s = f.shapes[i];
    if (i == f.reflector || s.is_transparent) continue;
    if (s.form != Form::kMesh) {
      Scan(c, v, c.mirrored[i], RectOf(f, v, s, c.mirrored[i]), i, c.mirror, behind);
      continue;
    }
    const Projection p = Project(v, c.mirrored[i], f.width, f.height);
    Rasterize(*c.mirrored_meshes[i], p, patches, f.culls_faces,
              [&](int x, int y, Mask mask, Wide depth, int triangle) {
                const int block = y * c.blocks_x + x;
                May allowed;
                if (!behind(block, allowed)) return;
                mask &= allowed.mask & (depth > allowed.nearest) & (depth < c.mirror.Depth(block));
                c.mirror.Add(block, mask, depth, i, triangle);
              });
  }
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
