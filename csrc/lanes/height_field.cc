#include "lanes/height_field.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace pyfastenv::lanes {

namespace {

using Vec = std::array<double, 3>;

Vec operator+(const Vec& a, const Vec& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Vec operator-(const Vec& a, const Vec& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vec operator*(double s, const Vec& a) { return {s * a[0], s * a[1], s * a[2]}; }
double Dot(const Vec& a, const Vec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vec Cross(const Vec& a, const Vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double Determinant(const Vec& a, const Vec& b, const Vec& c) { return Dot(a, Cross(b, c)); }
Vec Unit(const Vec& v) {
  const double norm = std::sqrt(Dot(v, v));
  return norm < mjMINVAL ? Vec{1, 0, 0} : (1 / norm) * v;
}
Vec Turn(const double* mat, const Vec& v) {
  Vec r{};
  for (size_t i = 0; i < 3; ++i)
    r[i] = mat[3 * i] * v[0] + mat[3 * i + 1] * v[1] + mat[3 * i + 2] * v[2];
  return r;
}
Vec TurnBack(const double* mat, const Vec& v) {
  Vec r{};
  for (size_t i = 0; i < 3; ++i) r[i] = mat[i] * v[0] + mat[3 + i] * v[1] + mat[6 + i] * v[2];
  return r;
}

bool SameSign(double a, double b) {
  return static_cast<bool>(static_cast<int>(a > 0 && b > 0) | static_cast<int>(a < 0 && b < 0));
}

// ---- the point of a simplex that is nearest to the origin ---------------------------------------

constexpr double kFar = std::numeric_limits<double>::max();
constexpr double kShort = mjMINVAL * mjMINVAL;  // squared length of no segment

struct Nearest {
  double weight[4];  // of the corners
  Vec foot;          // the origin's on the line or plane of the corners that have weight
};

void Segment(const Vec& a, const Vec& b, Nearest& nearest) {
  const Vec along = b - a;
  const double squared = Dot(along, along);
  const double share = -(Dot(b, along) / squared);
  nearest.foot = share * along + b;
  // along the axis that shows most of it
  const double x = std::abs(along[0]), y = std::abs(along[1]), z = std::abs(along[2]);
  size_t axis = y >= x ? 1 : 0;
  axis = z >= (y >= x ? y : x) ? 2 : axis;
  const double length = a[axis] - b[axis];
  const double to_b = nearest.foot[axis] - b[axis], to_a = a[axis] - nearest.foot[axis];
  const bool before_b = SameSign(length, to_b) && !(squared < kShort);
  const bool inside = before_b && SameSign(length, to_a);
  const double of_a = to_b / length, of_b = to_a / length;
  nearest.weight[0] = inside ? of_a : before_b ? 1 : 0;
  nearest.weight[1] = inside ? of_b : before_b ? 0 : 1;
}

// The origin's foot on the plane of a triangle; false if that has no normal.
bool FootOnPlane(const Vec& a, const Vec& b, const Vec& c, Vec& foot) {
  const Vec ab = b - a, ac = c - a, bc = c - b;
  bool flat = false;
  const auto is_good = [&](const Vec& normal, const Vec& corner) {
    const double height = Dot(normal, corner), squared = Dot(normal, normal);
    flat = squared == 0;
    foot = (height / squared) * normal;
    return flat || (height != 0 && squared > mjMINVAL);
  };
  if (!is_good(Cross(bc, ab), b) && !is_good(Cross(ab, ac), a)) is_good(Cross(ac, bc), c);
  return !flat;
}

// Takes the nearest point of a side, whose corners have these places, if it is nearer.
template <size_t N>
void TakeNearer(const std::array<const Vec*, N>& corner, const std::array<int, N>& place,
                int omitted, const Nearest& of_side, double& least, Nearest& nearest) {
  Vec x = of_side.weight[0] * *corner[0];
  for (size_t i = 1; i < N; ++i) x = x + of_side.weight[i] * *corner[i];
  const double squared = Dot(x, x);
  if (!(squared < least)) return;
  least = squared;
  for (size_t i = 0; i < N; ++i) nearest.weight[place[i]] = of_side.weight[i];
  nearest.weight[omitted] = 0;
  nearest.foot = of_side.foot;
}

void Triangle(const Vec& a, const Vec& b, const Vec& c, Nearest& nearest) {
  Vec& foot = nearest.foot;
  bool in_a = false, in_b = false, in_c = false;
  if (FootOnPlane(a, b, c, foot)) {
    // seen along the axis that shows most of it
    const Vec ab = b - a, ac = c - a;
    const auto area = [](const Vec& u, const Vec& v, size_t i, size_t j) {
      return u[i] * v[j] - u[j] * v[i];
    };
    const double yz = area(ab, ac, 1, 2), xz = area(ab, ac, 0, 2), xy = area(ab, ac, 0, 1);
    size_t i = 0, j = 1;
    double whole = xy;
    if (std::abs(yz) >= std::abs(xz) && std::abs(yz) >= std::abs(xy)) {
      i = 1, j = 2, whole = yz;
    } else if (std::abs(xz) >= std::abs(xy)) {
      j = 2, whole = xz;
    }
    const Vec to_a = a - foot, to_b = b - foot, to_c = c - foot;
    const double of_a = area(to_b, to_c, i, j), of_b = area(to_c, to_a, i, j),
                 of_c = area(to_a, to_b, i, j);
    in_a = SameSign(whole, of_a);
    in_b = SameSign(whole, of_b);
    in_c = SameSign(whole, of_c);
    if (in_a && in_b && in_c) {
      const double sum = of_a + of_b + of_c;
      nearest.weight[0] = of_a / sum;
      nearest.weight[1] = of_b / sum;
      nearest.weight[2] = of_c / sum;
      return;
    }
  }
  double least = kFar;
  Nearest side;
  const auto take = [&](const Vec& u, const Vec& v, int at_u, int at_v, int omitted) {
    Segment(u, v, side);
    TakeNearer<2>({&u, &v}, {at_u, at_v}, omitted, side, least, nearest);
  };
  if (!in_a) take(b, c, 1, 2, 0);
  if (!in_b) take(a, c, 0, 2, 1);
  if (!in_c) take(a, b, 0, 1, 2);
}

void Tetrahedron(const Vec& a, const Vec& b, const Vec& c, const Vec& d, Nearest& nearest) {
  const double of_a = -Determinant(b, c, d), of_b = Determinant(a, c, d),
               of_c = -Determinant(a, b, d), of_d = Determinant(a, b, c);
  const double whole = of_a + of_b + of_c + of_d;
  const bool in_a = SameSign(whole, of_a), in_b = SameSign(whole, of_b),
             in_c = SameSign(whole, of_c), in_d = SameSign(whole, of_d);
  if (in_a && in_b && in_c && in_d) {
    std::fill_n(nearest.weight, 4, 1.0);  // whichever: the origin is inside
    return;
  }
  double least = kFar;
  Nearest side;
  const auto take = [&](const Vec& u, const Vec& v, const Vec& w, std::array<int, 3> place,
                        int omitted) {
    Triangle(u, v, w, side);
    TakeNearer<3>({&u, &v, &w}, place, omitted, side, least, nearest);
  };
  if (!in_a) take(b, c, d, {1, 2, 3}, 0);
  if (!in_b) take(a, c, d, {0, 2, 3}, 1);
  if (!in_c) take(a, b, d, {0, 1, 3}, 2);
  if (!in_d) take(a, b, c, {0, 1, 2}, 3);
}

// ---- a prism and a point or segment ------------------------------------------------------------

struct Prism {
  Vec top[3];
  double bottom;  // of the corners below them

  Vec Center() const {
    const double x = top[0][0] + top[1][0] + top[2][0] + top[0][0] + top[1][0] + top[2][0];
    const double y = top[0][1] + top[1][1] + top[2][1] + top[0][1] + top[1][1] + top[2][1];
    const double z = bottom + bottom + bottom + top[0][2] + top[1][2] + top[2][2];
    return (1.0 / 6.0) * Vec{x, y, z};
  }
  Vec Farthest(const Vec& d) const {
    const bool down = d[2] < 0;
    const auto along = [&](const Vec& v) {
      return v[0] * d[0] + v[1] * d[1] + (down ? bottom : v[2]) * d[2];
    };
    const double first = along(top[0]), second = along(top[1]), third = along(top[2]);
    int best = second > first ? 1 : 0;
    best = third > (second > first ? second : first) ? 2 : best;
    const Vec& v = top[best];
    return {v[0], v[1], down ? bottom : v[2]};
  }
};

// A sphere or capsule in the field's frame: what is within a radius of a segment, of a sphere of
// its center.
struct Round {
  Vec center, end[2];
  Vec axis;         // from the second end to the first
  Vec least, most;  // bounds

  Round(const mjModel& m, int geom, const double* field_mat, const double* geom_mat, const Vec& at)
      : center(at), end{at, at}, axis{} {
    const double radius = m.geom_size[ptrdiff_t{3} * geom];
    if (m.geom_type[geom] == mjGEOM_SPHERE) {
      for (size_t i = 0; i < 3; ++i) {
        least[i] = -radius + center[i];
        most[i] = radius + center[i];
      }
      return;
    }
    const double half = m.geom_size[ptrdiff_t{3} * geom + 1];
    for (size_t i = 0; i < 3; ++i) {
      double row[3];
      for (size_t k = 0; k < 3; ++k) {
        row[k] = field_mat[i] * geom_mat[k] + field_mat[3 + i] * geom_mat[3 + k] +
                 field_mat[6 + i] * geom_mat[6 + k];
      }
      const auto farthest = [&](double sign) {
        const double along = sign * row[2];
        return row[0] * (sign * row[0] * radius) + row[1] * (sign * row[1] * radius) +
               row[2] * (along * radius + (along >= 0 ? half : -half)) + center[i];
      };
      axis[i] = row[2];
      least[i] = farthest(-1);
      most[i] = farthest(1);
    }
    end[0] = half * axis + center;
    end[1] = -half * axis + center;
  }
};

// Whether a plane through a prism's face has the geom farther than `reach` in front of it.
bool InFront(const Vec& normal, const Vec& corner, const Round& geom, double reach) {
  const double height =
      std::min(Dot(normal, geom.end[0] - corner), Dot(normal, geom.end[1] - corner));
  return height > 0 && height * height > reach * reach * Dot(normal, normal);
}

bool SurelyApart(const Prism& prism, const Round& geom, double reach) {
  const Vec &a = prism.top[0], &b = prism.top[1], &c = prism.top[2];
  Vec up = Cross(b - a, c - a);
  const double turn = up[2] < 0 ? -1 : 1;
  if (InFront(turn * up, a, geom, reach)) return true;
  const auto beyond = [&](const Vec& u, const Vec& v) {
    return InFront({turn * (v[1] - u[1]), turn * (u[0] - v[0]), 0}, u, geom, reach);
  };
  return beyond(a, b) || beyond(b, c) || beyond(c, a);
}

struct Vertex {
  Vec difference, of_prism, of_geom;
};

enum class Outcome { kApart, kNear, kUnknown };

// GJK. kNear: not farther apart than `cutoff`, with the nearest points of both.
Outcome Distance(const mjOption& options, const Prism& prism, const Round& geom, double cutoff,
                 double& distance, Vec& on_prism, Vec& on_geom) {
  Vec x = prism.Center() - geom.center;
  double norm = std::sqrt(Dot(x, x));
  if (norm < mjMINVAL) return Outcome::kUnknown;
  Vertex simplex[4];
  Nearest nearest{};
  double* weight = nearest.weight;
  size_t count = 0;
  for (int k = 0; k < options.ccd_iterations; ++k) {
    Vertex& vertex = simplex[count];
    const Vec back = (1 / norm) * x, direction = -1.0 * back;
    vertex.of_prism = prism.Farthest(direction);
    vertex.of_geom = geom.end[Dot(geom.axis, back) >= 0 ? 0 : 1];
    vertex.difference = vertex.of_prism - vertex.of_geom;
    const double lower = Dot(x, vertex.difference);
    if (lower > 0 && lower >= cutoff * norm) return Outcome::kApart;
    if (k > 0 && Dot(x, x - vertex.difference) < 0) break;
    const Vec &a = simplex[0].difference, &b = simplex[1].difference, &c = simplex[2].difference;
    switch (count) {
      case 0:
        weight[0] = 1;
        break;
      case 1:
        Segment(a, b, nearest);
        break;
      case 2:
        Triangle(a, b, c, nearest);
        break;
      default:
        Tetrahedron(a, b, c, simplex[3].difference, nearest);
    }
    const size_t corners = count + 1;
    count = 0;
    for (size_t i = 0; i < corners; ++i) {
      if (weight[i] == 0) continue;
      if (i != count) simplex[count] = simplex[i];
      weight[count++] = weight[i];
    }
    if (count == 0 || count == 4) return Outcome::kUnknown;
    x = count == 1 ? weight[0] * a : nearest.foot;
    const double before = norm;
    norm = std::sqrt(Dot(x, x));
    if (norm < mjMINVAL || (k > 0 && std::abs(norm - before) < mjMINVAL)) break;
  }
  if (count == 0 || !(norm > options.ccd_tolerance)) return Outcome::kUnknown;
  distance = norm;
  on_prism = weight[0] * simplex[0].of_prism;
  on_geom = weight[0] * simplex[0].of_geom;
  for (size_t i = 1; i < count; ++i) {
    on_prism = on_prism + weight[i] * simplex[i].of_prism;
    on_geom = on_geom + weight[i] * simplex[i].of_geom;
  }
  return Outcome::kNear;
}

}  // namespace

int CollideHeightField(const mjModel& m, int geom1, const double* pos1, const double* mat1,
                       int geom2, const double* pos2, const double* mat2, double margin,
                       mjPreContact* contacts) {
  const int type = m.geom_type[geom2];
  if (m.geom_type[geom1] != mjGEOM_HFIELD) return -1;
  if (type != mjGEOM_SPHERE && type != mjGEOM_CAPSULE) return -1;
  const mjfCollision* functions = mjCOLLISIONFUNC[mjGEOM_HFIELD];
  if (functions[type] != functions[mjGEOM_MESH]) return -1;  // somebody's own
  if ((m.opt.disableflags & mjDSBL_NATIVECCD) != 0) return -1;
  const int id = m.geom_dataid[geom1];
  const mjtNum* size = m.hfield_size + ptrdiff_t{4} * id;
  const int rows = m.hfield_nrow[id], columns = m.hfield_ncol[id];
  const float* heights = m.hfield_data + m.hfield_adr[id];

  // the field's box and the bounding sphere
  const Vec origin = {pos1[0], pos1[1], pos1[2]};
  const Vec center = TurnBack(mat1, Vec{pos2[0], pos2[1], pos2[2]} - origin);
  const double bound = m.geom_rbound[geom2] + margin;
  const Vec low = {-size[0], -size[1], -size[3]}, high = {size[0], size[1], size[2]};
  for (size_t i = 0; i < 3; ++i) {
    if (high[i] < center[i] - bound || low[i] > center[i] + bound) return 0;
  }

  const Round geom(m, geom2, mat1, mat2, center);
  Vec least = geom.least, most = geom.most;
  for (size_t i = 0; i < 3; ++i) {
    least[i] -= margin;
    most[i] += margin;
    if (least[i] > high[i] || most[i] < low[i]) return 0;
  }

  // the cells under it
  const auto cell = [&](double along, size_t i, int count) {
    const double place = (along + size[i]) / (2.0 * size[i]) * (count - 1);
    return std::min(std::max(0.0, place), count - 1.0);  // of no number 0
  };
  const auto from = [&](size_t i, int count) { return static_cast<int>(cell(least[i], i, count)); };
  const auto to = [&](size_t i, int count) {
    const double last = cell(most[i], i, count);
    return static_cast<int>(last) + static_cast<int>(last > static_cast<int>(last));
  };
  const int first_column = from(0, columns), last_column = to(0, columns);
  const int first_row = from(1, rows), last_row = to(1, rows);
  const double dx = (2.0 * size[0]) / (columns - 1), dy = (2.0 * size[1]) / (rows - 1);
  const double of_field = 0.5 * margin;
  const double of_geom = 0.5 * margin + m.geom_size[ptrdiff_t{3} * geom2];
  const double cutoff = of_field + of_geom;
  if (!(cutoff > 0)) return -1;
  constexpr double kSurely = 1e-6;
  const double reach = cutoff + 2 * m.opt.ccd_tolerance + kSurely;

  Prism prism{{}, -size[3]};
  const auto add = [&](int row, int column) {
    prism.top[0] = prism.top[1];
    prism.top[1] = prism.top[2];
    prism.top[2] = {dx * column - size[0], dy * row - size[1],
                    heights[ptrdiff_t{row} * columns + column] * size[2]};
  };
  int count = 0;
  for (int row = first_row; row < last_row; ++row) {
    add(row + 1, first_column);
    add(row, first_column);
    for (int column = first_column + 1; column <= last_column; ++column) {
      for (const int next : {row + 1, row}) {
        add(next, column);
        const auto is_low = [&](const Vec& corner) { return corner[2] < least[2]; };
        if (std::all_of(prism.top, prism.top + 3, is_low) || SurelyApart(prism, geom, reach))
          continue;
        double distance = 0;
        Vec on_prism, on_geom;
        const Outcome outcome = Distance(m.opt, prism, geom, cutoff, distance, on_prism, on_geom);
        if (outcome == Outcome::kUnknown) return -1;
        if (outcome == Outcome::kApart) continue;
        const Vec towards = Unit(on_geom - on_prism);
        if (of_field != 0) on_prism = on_prism + of_field * towards;
        on_geom = on_geom - of_geom * towards;
        distance -= cutoff;
        if (!(distance < 0)) continue;
        mjPreContact& contact = contacts[count];
        contact = {};
        contact.dist = margin + distance;
        const Vec pos = Turn(mat1, 0.5 * (on_prism + on_geom)) + origin;
        const Vec normal = Turn(mat1, Unit(on_prism - on_geom));
        std::copy_n(pos.data(), 3, contact.pos);
        std::copy_n(normal.data(), 3, contact.normal);
        if (++count == mjMAXCONPAIR) return count;
      }
    }
  }
  return count;
}

}  // namespace pyfastenv::lanes
