// The picture while it is drawn: blocks of 4x4 pixels that know what is seen in them, and rays.
#pragma once

#include "render/arena.h"
#include "render/kernels/cast.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

/// What sixteen pixels (or samples of pixels) see: `depth` along the view, which shape (-1: the
/// sky) and, of a mesh, which triangle.
struct Seen {
  Wide depth;
  WideInt shape, triangle;
};

WIDE Seen Nothing() { return {kFar, -1, -1}; }

WIDE void Keep(Seen& seen, Mask nearer, Wide depth, int shape, WideInt triangle) {
  seen.depth = Pick(nearer, depth, seen.depth);
  seen.shape = Pick(nearer, WideInt(shape), seen.shape);
  seen.triangle = Pick(nearer, triangle, seen.triangle);
}

/// What the blocks of a picture see at their pixels' middles. Most blocks see one shape, which then
/// is all that is kept beside the depths: memory is what large pictures wait for.
struct Middles {
  static constexpr int kMixed = -2;

  int* only = nullptr;  // the shape that all of a block's pixels see, -1: the sky; or kMixed
  Wide* depths = nullptr;
  WideInt* shapes = nullptr;     // of mixed blocks
  WideInt* triangles = nullptr;  // of those that see meshes; null: no mesh is drawn here

  static Middles Make(size_t blocks, bool has_meshes, Arena& arena) {
    Middles m{arena.Take<int>(blocks), arena.Take<Wide>(blocks), arena.Take<WideInt>(blocks)};
    if (has_meshes) m.triangles = arena.Take<WideInt>(blocks);
    for (size_t i = 0; i < blocks; ++i) m.only[i] = -1;
    return m;
  }
  WIDE Wide Depth(int block) const { return only[block] == -1 ? Wide(kFar) : depths[block]; }
  WIDE WideInt Shape(int block) const {
    return only[block] == kMixed ? shapes[block] : WideInt(only[block]);
  }
  WIDE Seen At(int block) const {
    return {Depth(block), Shape(block), triangles == nullptr ? WideInt(-1) : triangles[block]};
  }
  /// Whether some of a block's pixels see a shape.
  WIDE bool MaySee(int block, int shape) const {
    return only[block] == shape || only[block] == kMixed;
  }
  WIDE void Add(int block, Mask nearer, Wide depth, int shape) {
    const uint32_t bits = Bits(nearer);
    if (bits == kAllBits) {
      depths[block] = depth, only[block] = shape;
    } else if (bits != 0) {
      depths[block] = Pick(nearer, depth, Depth(block));
      if (only[block] == shape) return;
      shapes[block] = Pick(nearer, WideInt(shape), Shape(block));
      only[block] = kMixed;
    }
  }
  WIDE void Add(int block, Mask nearer, Wide depth, int shape, int triangle) {
    triangles[block] = Pick(nearer, WideInt(triangle), triangles[block]);
    Add(block, nearer, depth, shape);
  }
};

/// A rectangle of blocks, without x1 and y1.
struct Rect {
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool Has(int x, int y) const { return x >= x0 && x < x1 && y >= y0 && y < y1; }
};

/// A view's rays in a shape's axes: origin + t direction, either of which moves with the pixel.
struct LocalView {
  Float3 eye, ahead, right, up;
  bool is_orthographic = false;
  float start = 0;  // the depth of the shape's middle
};

WIDE LocalView ToLocal(const View& v, const Shape& s) {
  const Float3 to_eye = v.eye.position - s.pose.position;
  return {In(s.pose, to_eye),  In(s.pose, v.eye.z), In(s.pose, v.eye.x),
          In(s.pose, v.eye.y), v.is_orthographic,   -Dot(to_eye, v.eye.z)};
}

/// A view's rays in the world's axes.
WIDE LocalView ToWorld(const View& v) {
  return {v.eye.position, v.eye.z, v.eye.x, v.eye.y, v.is_orthographic};
}

WIDE Rays RaysAt(const LocalView& v, Wide x, Wide y) {
  const Wide3 moved = Fma(Widen(v.up), y, Fma(Widen(v.right), x, Widen({0, 0, 0})));
  if (v.is_orthographic) return {moved + v.eye, Widen(v.ahead)};
  return {Widen(v.eye), moved + v.ahead};
}

/// Where in a pixel the samples of multisampling are, in pixels.
struct Samples {
  int count;
  const float *x, *y;
};

WIDE Samples SamplesOf(int count) {
  static constexpr float kX1[] = {.5F}, kX4[] = {.375F, .875F, .125F, .625F};
  static constexpr float kY4[] = {.125F, .375F, .625F, .875F};
  static constexpr float kX16[] = {.53125F, .40625F, .28125F, .71875F, .15625F, .59375F,
                                   .78125F, .84375F, .46875F, .34375F, .21875F, .09375F,
                                   .96875F, .65625F, .90625F, .03125F};
  static constexpr float kY16[] = {.53125F, .28125F, .65625F, .34375F, .46875F, .90625F,
                                   .84375F, .15625F, .09375F, .71875F, .21875F, .59375F,
                                   .40625F, .03125F, .96875F, .78125F};
  if (count == 4) return {4, kX4, kY4};
  if (count == 16) return {16, kX16, kY16};
  return {1, kX1, kX1};
}

struct Picture {
  const Frame* frame;
  int blocks_x, blocks_y;
  Wide lane_x, lane_y;  // of a block's pixels
  LocalView* local;     // of each shape, by the picture's view
  LocalView* mirrored;  // by the mirror's
  Rect* rects;
  const Triangles **meshes, **mirrored_meshes;  // of each shape that is one, as fine as needed
  Middles seen;       // without meshes, if there are several samples a pixel
  Middles mirror;     // what the reflector shows; `only` is null if there is none
  int* sampled;       // per block: where its samples are in `samples`, or -1
  WideInt sample_at;  // where each pixel's first sample is among its block's, in floats
  Seen* samples;      // blocks in which there are meshes, frame->samples Seen each, as Patches lie
  int num_sampled;
  bool has_meshes;
  Middles* layers;  // of each transparent mesh
  View mirror_view;

  int num_blocks() const { return blocks_x * blocks_y; }
  WIDE Wide X(const View& v, int block, Wide in_pixel) const {
    return Fma(lane_x + in_pixel + static_cast<float>(block * kBlock), v.pixel_x, v.left);
  }
  WIDE Wide Y(const View& v, int block, Wide in_pixel) const {
    return Fma(lane_y + in_pixel + static_cast<float>(block * kBlock), v.pixel_y, v.top);
  }
};

/// The blocks in which a shape may be seen.
inline Rect RectOf(const Frame& f, const View& v, const Shape& s, const LocalView& local) {
  const int nx = (f.width + kBlock - 1) / kBlock, ny = (f.height + kBlock - 1) / kBlock;
  const Rect all{0, 0, nx, ny}, none{};
  if (s.form == Form::kPlane) return all;
  const bool is_mesh = s.form == Form::kMesh;
  const Float3 low = is_mesh ? s.low : s.size * -1.0F, high = is_mesh ? s.high : s.size;
  Float3 middle = (low + high) * 0.5F, half = (high - low) * 0.5F;
  if (s.form == Form::kCapsule) half.z += s.size.x;
  float x0 = kFar, x1 = -kFar, y0 = kFar, y1 = -kFar;
  int behind = 0;
  for (int k = 0; k < 8; ++k) {
    const Float3 corner{middle.x + ((k & 1) != 0 ? half.x : -half.x),
                        middle.y + ((k & 2) != 0 ? half.y : -half.y),
                        middle.z + ((k & 4) != 0 ? half.z : -half.z)};
    const Float3 q = corner - local.eye;
    const float z = Dot(q, local.ahead);
    if (z < v.near) {
      ++behind;
      continue;
    }
    const float scale = v.is_orthographic ? 1 : 1 / z;
    const float x = (Dot(q, local.right) * scale - v.left) / v.pixel_x;
    const float y = (Dot(q, local.up) * scale - v.top) / v.pixel_y;
    x0 = x < x0 ? x : x0, x1 = x > x1 ? x : x1;
    y0 = y < y0 ? y : y0, y1 = y > y1 ? y : y1;
  }
  if (behind != 0) return behind == 8 ? none : all;
  const auto block = [](float pixel, int count) {
    const float b = pixel / kBlock;
    return b <= 0 ? 0 : b >= static_cast<float>(count) ? count : static_cast<int>(b);
  };
  if (x1 < 0 || y1 < 0) return none;
  return {block(x0, nx), block(y0, ny), block(x1 + kBlock, nx), block(y1 + kBlock, ny)};
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
