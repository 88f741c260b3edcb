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
    power = 1.0F / l.attenuation.x;
    if (l.attenuation.y != 0 || l.attenuation.z != 0) {
      const Wide far = Fma(distance, l.attenuation.z, l.attenuation.y);
      power = 1.0F / Fma(distance, far, l.attenuation.x);
    }
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
    const Wide cosine = Max(Dot(p.normal, half), 0.0F);  // times half's length
    const Wide above = cosine * cosine, below = Max(Dot(half, half), 1e-12F);
    const Mask glows = (facing > 0.0F) & (above >= below * s.glow_from);
    if (Any(glows)) {
      Wide glow = Power(above / below, s.shininess / 2) * (power * s.specular);
      if (s.shininess % 2 != 0) glow *= cosine / Sqrt(below);
      add = Fma(Widen(l.specular), Pick(glows, glow, 0.0F), add);
    }
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

/// Light that is linear in the halves of 3 x 3 cells: color[half][0] + x color[half][1] + y
/// color[half][2]. A cell's lane is that of its lowest of 4 x 4 corners.
struct Tile {
  static constexpr int kCells = 3, kCorners = kCells + 1;
  int key;  // pass and which cells; -1: none
  Wide3 color[2][3];
};

/// The halves of cells that points lie in, as HalfAt numbers them.
struct Halves {
  static constexpr int kMost = 4;
  int count = 0;  // more than kMost: cells are smaller than pixels, and light is computed at each
  int which[kMost];
  Mask in[kMost];
};

/// The tiles that a picture has needed so far, each in the place that its key gives.
struct GridLight {
  static constexpr int kBits = 7, kPlaces = 1 << kBits;
  Tile* tiles = nullptr;  // null: light is computed at each pixel
};

/// Where cells begin along an axis.
WIDE Wide CellEdge(const PlaneGrid& g, int axis, float size, Wide i) {
  const Wide inner = (g.edge[axis] - size) + (i - 1.0F) * g.width[axis];
  const Wide low = Pick(i < 0.5F, -size, inner);
  return Pick(i > static_cast<float>(g.cells[axis]) - 0.5F, size, low);
}

/// Tiles along an axis.
WIDE int TilesOf(const PlaneGrid& g, int axis) {
  return (g.cells[axis] + Tile::kCells - 1) / Tile::kCells;
}

/// Which lanes are in which half of a cell: 32 times the tile, plus twice the cell's lane, plus 1
/// in the upper half.
WIDE WideInt HalfAt(const Shape& s, Wide x, Wide y) {
  WideInt tile = 0, lane = 0;
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
    const WideInt t = Truncate((i + 0.5F) * (1.0F / Tile::kCells));
    tile = tile * TilesOf(g, axis) + t;
    lane = lane * Tile::kCorners + (Truncate(i) - t * Tile::kCells);
  }
  return tile * 32 + lane * 2 + Pick(sum > 1.0F, WideInt(1), WideInt(0));
}

WIDE Halves HalvesOf(WideInt half, Mask mask) {
  Halves h;
  for (uint32_t left = Bits(mask); left != 0; ++h.count) {
    if (h.count == Halves::kMost) return ++h.count, h;
    const int one = h.which[h.count] = half[First(left)];
    const Mask is = h.in[h.count] = half == WideInt(one);
    left &= ~Bits(is);
  }
  return h;
}

/// Computes the light at a tile's corners, and the halves' from it.
inline void Fill(const Frame& f, const Shape& s, int row, int column, int pass, Tile& tile) {
  constexpr int kCorners = Tile::kCorners;
  const Wide lane = Iota(), across = Floor(lane * (1.0F / kCorners));
  const auto corner = [](int tile, Wide k) { return k + static_cast<float>(tile * Tile::kCells); };
  const Wide x0 = CellEdge(s.grid, 0, s.size.x, corner(row, across));
  const Wide y0 = CellEdge(s.grid, 1, s.size.y, corner(column, lane - across * kCorners));
  const Wide3 at = Widen(s.pose.position) + Widen(s.pose.x) * x0 + Widen(s.pose.y) * y0;
  const Wide3 lit = LightOf(f, s, {at, Widen(s.pose.z), Unit(at * -1.0F)}, pass, 1);
  const Wide x1 = Shifted<kCorners>(x0), y1 = Shifted<1>(y0);
  const Wide kx = 1.0F / (x1 - x0), ky = 1.0F / (y1 - y0);
  const Wide3 right = Shifted<kCorners>(lit), up = Shifted<1>(lit);
  const Wide3 both = Shifted<kCorners + 1>(lit);
  const auto fill = [](Wide3* half, const Wide3& own, const Wide3& by_x, const Wide3& by_y, Wide x,
                       Wide y) {
    half[0] = own - by_x * x - by_y * y, half[1] = by_x, half[2] = by_y;
  };
  fill(tile.color[0], lit, (right - lit) * kx, (up - lit) * ky, x0, y0);
  fill(tile.color[1], both, (both - up) * kx, (both - right) * ky, x1, y1);
}

inline GridLight MakeGrid(const Shape& s, Arena& arena) {
  if (s.grid.cells[0] == 0) return {};
  GridLight g{arena.Take<Tile>(GridLight::kPlaces)};
  for (int i = 0; i < GridLight::kPlaces; ++i) g.tiles[i].key = -1;
  return g;
}

WIDE const Tile& TileOf(const GridLight& g, const Frame& f, const Shape& s, int index, int pass) {
  const int key = index * (kMaxLights + 1) + pass + 1;
  Tile& tile = g.tiles[static_cast<uint32_t>(key) * 2654435761U >> (32 - GridLight::kBits)];
  if (tile.key != key) {
    const int columns = TilesOf(s.grid, 1);
    Fill(f, s, index / columns, index % columns, pass, tile);
    tile.key = key;
  }
  return tile;
}

/// The light of one half, as HalfAt numbers it, at (x, y) in the plane.
WIDE Wide3 LinearAt(const Tile& tile, int half, Wide x, Wide y) {
  const Wide3* color = tile.color[half & 1];
  const int lane = half >> 1 & 15;
  const auto part = [&](int i) {
    return Widen({color[i].x[lane], color[i].y[lane], color[i].z[lane]});
  };
  return Fma(part(2), y, Fma(part(1), x, part(0)));
}

/// The light on a plane's points: `at` in the world, `x` and `y` in the plane, `halves` theirs.
inline Wide3 GridLightOf(const GridLight& g, const Frame& f, const Shape& s, const Wide3& at,
                         Wide x, Wide y, const Halves& halves, int pass) {
  if (halves.count > Halves::kMost) {
    return LightOf(f, s, {at, Widen(s.pose.z), ToEye(f.view, at)}, pass, 1);
  }
  Wide3 c{0.0F, 0.0F, 0.0F};
  for (int i = 0; i < halves.count; ++i) {
    const int one = halves.which[i];
    c = Pick(halves.in[i], LinearAt(TileOf(g, f, s, one >> 5, pass), one, x, y), c);
  }
  return c;
}

}  // namespace pyfastenv::render::PYFASTENV_VARIANT
