// OpenGL's fixed-function light, of each pixel; and of large planes at their cells' corners only,
// where MuJoCo computes it, and linear between them.
#pragma once

#include "render/kernels/picture.h"

namespace pyfastenv::render::PYFASTENV_VARIANT {

// Passes of drawing, each clamped to what a picture holds: all lights at once, those without
// shadows, or one with shadows (its index).
constexpr int kAllLights = -2, kUnshadowed = -1;

/// Points of a surface: where they are, the outward normal and the direction to the eye, in the
/// world's axes; both of length 1.
struct Points {
  Wide3 at, normal, to_eye;
};

/// The direction to a view's eye.
WIDE Wide3 ToEye(const View& v, const Wide3& at) { return Unit(Widen(v.eye.position) - at); }

/// What one light adds: colour times (ambient + diffuse), plus specular.
WIDE Wide3 AddLight(const Shape& s, const Light& l, const Points& p, const Wide3& color,
                    const Wide3& sum) {
  Wide3 to = Widen(l.direction * -1.0F);
  Wide power = 1.0F;
  if (!l.is_directional) {
    to = Widen(l.position) - p.at;
    const Wide distance = Sqrt(Dot(to, to));
    to = to * (1.0F / distance);
    power = 1.0F / Fma(distance, Fma(distance, l.attenuation.z, l.attenuation.y), l.attenuation.x);
    if (l.cut > -1) {
      const Wide cone = -Dot(to, l.direction);
      power = Pick(cone >= l.cut, power * Power(Max(cone, 0.0F), l.exponent), 0.0F);
    }
  }
  const Wide facing = Dot(p.normal, to);
  const Wide diffuse = Max(facing, 0.0F) * power;
  Wide3 add = Fma(Widen(l.diffuse), diffuse, Widen(l.ambient) * power);
  add = Times(add, color);
  if (s.specular * (l.specular.x + l.specular.y + l.specular.z) > 0) {
    const Wide3 half = to + p.to_eye;
    const Wide shine = Dot(p.normal, half) / Sqrt(Max(Dot(half, half), 1e-12F));
    const Wide glow = Power(Max(shine, 0.0F), s.shininess) * (power * s.specular);
    add = Fma(Widen(l.specular), Pick(facing > 0.0F, glow, 0.0F), add);
  }
  return sum + add;
}

/// The light that reaches points in one pass. `factor`: of the shape's own colour.
inline Wide3 LightOf(const Frame& f, const Shape& s, const Points& p, int pass, float factor) {
  const Wide3 color = Widen(s.color * factor);
  Wide3 sum{0.0F, 0.0F, 0.0F};
  if (pass < 0) sum = color * (s.emission + f.ambient);
  for (int k = 0; k < f.num_lights; ++k) {
    if (pass == k || pass == kAllLights || (pass == kUnshadowed && !f.lights[k].casts_shadow)) {
      sum = AddLight(s, f.lights[k], p, color, sum);
    }
  }
  return Clamp01(sum);
}

// ---- planes of large cells ---------------------------------------------------------------------

/// Light that is linear in half a cell: color[0] + x color[1] + y color[2].
struct Linear {
  int key;  // pass and half; -1: none
  Float3 color[3];
};

/// The light at the 4 x 4 corners of 3 x 3 cells.
struct Corners {
  static constexpr int kCells = 3;  // a side
  int key;                          // pass and which cells; -1: none
  Wide3 lit;
};

/// The halves that a picture has needed so far, and the corners that they were made of, each in the
/// place that its key gives.
struct GridLight {
  static constexpr int kPlaces = 1024, kCornerPlaces = 128;
  Linear* halves = nullptr;  // null: light is computed at each pixel
  Corners* corners = nullptr;
};

/// A key's place among 1 << bits.
WIDE uint32_t PlaceOf(int key, int bits) {
  return static_cast<uint32_t>(key) * 2654435761U >> (32 - bits);
}

WIDE float CellEdge(const PlaneGrid& g, int axis, float size, int i) {
  if (i == 0) return -size;
  if (i == g.cells[axis]) return size;
  return g.edge[axis] - size + static_cast<float>(i - 1) * g.width[axis];
}

/// Which lanes are in which half of a cell: its index in GridLight.
WIDE WideInt HalfAt(const Shape& s, Wide x, Wide y) {
  WideInt index = 0;
  Wide sum = 0.0F;
  for (int axis = 0; axis < 2; ++axis) {
    const PlaneGrid& g = s.grid;
    const float size = axis == 0 ? s.size.x : s.size.y;
    const Wide v = axis == 0 ? x : y;
    const auto last = static_cast<float>(g.cells[axis] - 1);
    const float k = g.width[axis] > 0 ? 1 / g.width[axis] : 0;
    const Wide i = Clamp(Floor((v + (size - g.edge[axis])) * k) + 1.0F, 0.0F, last);
    const Mask first = i < 0.5F;
    const Wide left = Pick(first, -size, Fma(i - 1.0F, g.width[axis], g.edge[axis] - size));
    const float edge = g.edge[axis] > 0 ? 1 / g.edge[axis] : 0;
    sum = Fma(v - left, Pick(first | (i > last - 0.5F), edge, k), sum);
    index = index * g.cells[axis] + Truncate(i);
  }
  return index * 2 + Pick(sum > 1.0F, WideInt(1), WideInt(0));
}

inline const Corners& CornersAt(const GridLight& light, const Frame& f, const Shape& s, int row,
                                int column, int pass) {
  constexpr int kCells = Corners::kCells;
  const PlaneGrid& g = s.grid;
  const int columns = (g.cells[1] + kCells - 1) / kCells;
  const int key = (row * columns + column) * (kMaxLights + 1) + pass + 1;
  Corners& c = light.corners[PlaceOf(key, 7)];
  if (c.key == key) return c;
  Wide x, y;
  for (int k = 0; k <= kCells; ++k) {
    const float edge_x = CellEdge(g, 0, s.size.x, row * kCells + k);
    const float edge_y = CellEdge(g, 1, s.size.y, column * kCells + k);
    for (int other = 0; other <= kCells; ++other) {
      x.Set(k * (kCells + 1) + other, edge_x), y.Set(other * (kCells + 1) + k, edge_y);
    }
  }
  const Wide3 at = Widen(s.pose.position) + Widen(s.pose.x) * x + Widen(s.pose.y) * y;
  c.lit = LightOf(f, s, {at, Widen(s.pose.z), Unit(at * -1.0F)}, pass, 1);
  c.key = key;
  return c;
}

/// Makes a half's light of its three corners'.
inline void Fill(const GridLight& light, const Frame& f, const Shape& s, int half, int pass,
                 Linear& out) {
  constexpr int kCells = Corners::kCells;
  const PlaneGrid& g = s.grid;
  const int i = half / 2 / g.cells[1], j = half / 2 % g.cells[1];
  const bool is_upper = (half & 1) != 0;
  const float x0 = CellEdge(g, 0, s.size.x, i), x1 = CellEdge(g, 0, s.size.x, i + 1);
  const float y0 = CellEdge(g, 1, s.size.y, j), y1 = CellEdge(g, 1, s.size.y, j + 1);
  const Wide3& lit = CornersAt(light, f, s, i / kCells, j / kCells, pass).lit;
  const auto corner = [&](int right, int up) {
    const int k = (i % kCells + right) * (kCells + 1) + j % kCells + up;
    return Float3{lit.x[k], lit.y[k], lit.z[k]};
  };
  const Float3 right = corner(1, 0), up = corner(0, 1);  // which both halves have
  const Float3 own = is_upper ? corner(1, 1) : corner(0, 0);
  out.color[1] = (is_upper ? own - up : right - own) * (1 / (x1 - x0));
  out.color[2] = (is_upper ? own - right : up - own) * (1 / (y1 - y0));
  out.color[0] = own - out.color[1] * (is_upper ? x1 : x0) - out.color[2] * (is_upper ? y1 : y0);
}

inline GridLight MakeGrid(const Shape& s, Arena& arena) {
  if (s.grid.cells[0] == 0) return {};
  GridLight g{arena.Take<Linear>(GridLight::kPlaces),
              arena.Take<Corners>(GridLight::kCornerPlaces)};
  for (int i = 0; i < GridLight::kPlaces; ++i) g.halves[i].key = -1;
  for (int i = 0; i < GridLight::kCornerPlaces; ++i) g.corners[i].key = -1;
  return g;
}

WIDE const Linear& HalfOf(const GridLight& g, const Frame& f, const Shape& s, int half, int pass) {
  const int key = half * (kMaxLights + 1) + pass + 1;
  Linear& l = g.halves[PlaceOf(key, 10)];
  if (l.key != key) {
    Fill(g, f, s, half, pass, l);
    l.key = key;
  }
  return l;
}

WIDE Wide3 LinearAt(const Linear& l, Wide x, Wide y) {
  return Fma(Widen(l.color[2]), y, Fma(Widen(l.color[1]), x, Widen(l.color[0])));
}

/// The light on a plane's points: `at` in the world, `x` and `y` in the plane; `half`: HalfAt of
/// these. Where cells are smaller than pixels, light is computed at each pixel.
inline Wide3 GridLightOf(const GridLight& g, const Frame& f, const Shape& s, const Wide3& at,
                         Wide x, Wide y, WideInt half, int pass, Mask mask) {
  constexpr int kMost = 4;  // halves in a block
  uint32_t left = Bits(mask);
  Wide3 c{0.0F, 0.0F, 0.0F};
  for (int count = 0; left != 0; ++count) {
    if (count == kMost) return LightOf(f, s, {at, Widen(s.pose.z), ToEye(f.view, at)}, pass, 1);
    const int one = half[First(left)];
    const Mask is = half == WideInt(one);
    c = Pick(is, LinearAt(HalfOf(g, f, s, one, pass), x, y), c);
    left &= ~Bits(is);
  }
  return c;
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
