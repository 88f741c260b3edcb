// One source, compiled for each instruction set: see CMakeLists.txt. Nothing from the standard
// library may be instantiated here: the linker could keep the copy that only newer processors run.
#include "render/kernels.h"
#include "render/kernels/transparency.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

namespace {

/// The eye as the reflector mirrors it, if the eye is before the reflector.
bool Mirror(const Frame& f, View& mirror) {
  if (f.reflector < 0 || f.reflectance <= 0) return false;
  const Pose& p = f.shapes[f.reflector].pose;
  const auto flip = [&](Float3 a) { return a - p.z * (2 * Dot(p.z, a)); };
  mirror = f.view;
  Pose& eye = mirror.eye;
  if (Dot(p.z, eye.position - p.position) <= 0) return false;
  eye = {p.position + flip(eye.position - p.position), flip(eye.x), flip(eye.y), flip(eye.z)};
  return true;
}

Canvas Prepare(const Frame& f, Arena& arena) {
  Canvas c{};
  c.frame = &f;
  c.sky_level = SkyLevel(f), c.clear_depth = ClearDepth(f);
  c.blocks_x = (f.width + kBlock - 1) / kBlock, c.blocks_y = (f.height + kBlock - 1) / kBlock;
  alignas(64) int sample_at[kLanes];
  const Patches patches = PatchesOf(f.samples);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int x = lane % kBlock, y = lane / kBlock, side = 1 << patches.shift;
    c.lane_x.Set(lane, static_cast<float>(x)), c.lane_y.Set(lane, static_cast<float>(y));
    const int patch = y / side * (kBlock / side) + x / side;
    sample_at[lane] = patch * 3 * kLanes + (y % side * side + x % side) * f.samples;
  }
  __builtin_memcpy(&c.sample_at, sample_at, sizeof sample_at);
  const auto shapes = static_cast<size_t>(f.num_shapes);
  c.local = arena.Take<LocalView>(shapes), c.rects = arena.Take<Rect>(shapes);
  c.meshes = arena.Take<const Triangles*>(shapes);
  for (int i = 0; i < f.num_shapes; ++i) {
    const Shape& s = f.shapes[i];
    c.local[i] = ToLocal(f.view, s);
    c.rects[i] = RectOf(f, f.view, s, c.local[i]);
    const bool is_mesh = s.form == Form::kMesh;
    c.meshes[i] = is_mesh ? &LevelOf(s, c.local[i], f.view.pixel_x, f.view.near) : nullptr;
    c.has_meshes |= is_mesh;
  }
  const auto blocks = static_cast<size_t>(c.num_blocks());
  c.seen = Middles::Make(blocks, c.has_meshes && f.samples == 1, arena);
  c.sampled = arena.Take<int>(blocks);
  for (size_t i = 0; i < blocks; ++i) c.sampled[i] = -1;
  if (c.has_meshes && f.samples > 1) c.samples = arena.Take<Seen>(blocks * f.samples);
  return c;
}

void PrepareMirror(Canvas& c, Arena& arena) {
  const Frame& f = *c.frame;
  if (!Mirror(f, c.mirror_view)) return;
  c.mirror = Middles::Make(c.num_blocks(), c.has_meshes, arena);
  c.mirrored = arena.Take<LocalView>(f.num_shapes);
  c.mirrored_meshes = arena.Take<const Triangles*>(f.num_shapes);
  for (int i = 0; i < f.num_shapes; ++i) {
    const Shape& s = f.shapes[i];
    c.mirrored[i] = ToLocal(c.mirror_view, s);
    c.mirrored_meshes[i] =
        s.form == Form::kMesh ? &LevelOf(s, c.mirrored[i], f.view.pixel_x, f.view.near) : nullptr;
  }
  SeeMirrored(c);
}

void PrepareLight(Canvas& c, Arena& arena) {
  const Frame& f = *c.frame;
  c.shadows = arena.Take<Shadows>(f.num_lights);
  for (int k = 0; k < f.num_lights; ++k) {
    if (f.lights[k].casts_shadow) c.shadows[k] = ShadowsOf(f, f.lights[k], arena);
  }
  c.grids = arena.Take<GridLight>(f.num_shapes);
  for (int i = 0; i < f.num_shapes; ++i) c.grids[i] = MakeGrid(f.shapes[i], arena);
}

Wide3 ColorOfBlock(const Canvas& c, int bx, int by) {
  const Frame& f = *c.frame;
  const int block = by * c.blocks_x + bx;
  Seen samples[kMaxSamples];
  Wide3 color;
  if (f.samples > 1 && (c.sampled[block] >= 0 || IsEdge(c, bx, by))) {
    CollectSamples(c, bx, by, samples);
    color = ColorOfSamples(c, bx, by, samples);
  } else {
    if (f.num_transparent > 0) {
      for (int s = 0; s < f.samples; ++s) samples[s] = c.seen.At(block);
    }
    color = ColorOfMiddles(c, bx, by);
  }
  return f.num_transparent > 0 ? WithTransparent(c, bx, by, samples, color) : color;
}

/// Writes a block's pixels, without those beyond the picture.
void Write(const Frame& f, int bx, int by, const Wide3& color, uint8_t* rgb) {
  const auto byte = [](Wide a) { return Truncate(Fma(Clamp(a, 0.0F, 1.0F), 255.0F, 0.5F)); };
  const WideInt packed = byte(color.x) | (byte(color.y) << 8) | (byte(color.z) << 16);
  alignas(64) uint64_t pairs[kLanes / 2];  // of pixels, the left one in the lower half
  Store(reinterpret_cast<int*>(pairs), packed);
  const int x0 = bx * kBlock, y0 = by * kBlock;
  const int wide = f.width - x0 < kBlock ? f.width - x0 : kBlock;
  const int high = f.height - y0 < kBlock ? f.height - y0 : kBlock;
  const auto six_bytes = [](uint64_t pair) { return (pair & 0xffffff) | (pair >> 32 << 24); };
  for (int y = 0; y < high; ++y) {
    uint8_t* out = rgb + (static_cast<ptrdiff_t>(y0 + y) * f.width + x0) * 3;
    const uint64_t left = six_bytes(pairs[2 * y]), right = six_bytes(pairs[2 * y + 1]);
    const uint64_t first = left | right << 48;
    const auto last = static_cast<uint32_t>(right >> 16);
    if (wide == kBlock) {
      __builtin_memcpy(out, &first, sizeof first);
      __builtin_memcpy(out + sizeof first, &last, sizeof last);
    } else {
      __builtin_memcpy(out, &first, static_cast<size_t>(wide < 3 ? wide * 3 : 8));
      if (wide == 3) out[8] = static_cast<uint8_t>(last);
    }
  }
}

void Draw(const Frame& f, Arena& arena, uint8_t* rgb) {
  Canvas c = Prepare(f, arena);
  See(c);
  PrepareMirror(c, arena);
  PrepareLight(c, arena);
  if (f.num_transparent > 0) DrawLayers(c, arena);
  for (int by = 0; by < c.blocks_y; ++by) {
    for (int bx = 0; bx < c.blocks_x; ++bx) Write(f, bx, by, ColorOfBlock(c, bx, by), rgb);
  }
}

void DrawSeen(const Frame& f, Arena& arena, float* depth, int* shape) {
  Canvas c = Prepare(f, arena);
  See(c);
  for (int y = 0; y < f.height; ++y) {
    for (int x = 0; x < f.width; ++x) {
      const Seen seen = c.seen.At(y / kBlock * c.blocks_x + x / kBlock);
      const int lane = y % kBlock * kBlock + x % kBlock;
      const ptrdiff_t at = static_cast<ptrdiff_t>(y) * f.width + x;
      const float z = seen.depth[lane];
      if (depth != nullptr) depth[at] = z < f.view.far ? z : f.view.far;
      if (shape != nullptr) shape[at] = seen.shape[lane];
    }
  }
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels = {Draw, DrawSeen};

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
