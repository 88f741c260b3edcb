#include "lanes/rays.h"

#include <algorithm>
#include <cmath>

namespace pyfastenv::lanes {

namespace {

double Squared(const double* v) { return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]; }

bool IsVisible(const mjModel& m, int geom) {
  const int material = m.geom_matid[geom];
  const float* rgba =
      material < 0 ? m.geom_rgba + ptrdiff_t{4} * geom : m.mat_rgba + ptrdiff_t{4} * material;
  return rgba[3] != 0;
}

// Of the sphere that MuJoCo's function of a geom tries before anything else, the squared radius as
// it computes it; -1: it tries none.
double SquaredRadius(int type, const mjtNum* size) {
  switch (type) {
    case mjGEOM_SPHERE:
      return size[0] * size[0];
    case mjGEOM_CAPSULE:
      return (size[0] + size[1]) * (size[0] + size[1]);
    case mjGEOM_CYLINDER:
      return size[0] * size[0] + size[1] * size[1];
    case mjGEOM_BOX:
    case mjGEOM_MESH:  // the box around it
      return Squared(size);
    default:
      return -1;
  }
}

// ---- height fields ------------------------------------------------------------------------------

// One coordinate along a ray.
struct Course {
  Course(double start, double per_length) : from(start), along(per_length), inverse(1 / along) {}

  double from, along, inverse;
};

// Where a ray is, in its lengths.
struct Span {
  double begin, end;

  // Leaves where a coordinate is between two bounds.
  void Clip(double low, double high, const Course& x) {
    if (x.along == 0) {
      if (x.from < low || x.from > high) end = begin - 1;
      return;
    }
    const double first = (low - x.from) * x.inverse, last = (high - x.from) * x.inverse;
    begin = std::max(begin, std::min(first, last));
    end = std::min(end, std::max(first, last));
  }
  bool empty() const { return begin > end; }
};

// One ray on a height field, in its frame.
class HeightFieldRay {
 public:
  HeightFieldRay(const mjModel& m, int geom)
      : size_(m.hfield_size + ptrdiff_t{4} * m.geom_dataid[geom]),
        data_(m.hfield_data + m.hfield_adr[m.geom_dataid[geom]]),
        nrow_(m.hfield_nrow[m.geom_dataid[geom]]),
        ncol_(m.hfield_ncol[m.geom_dataid[geom]]),
        dx_((2.0 * size_[0]) / (ncol_ - 1)),
        dy_((2.0 * size_[1]) / (nrow_ - 1)) {}

  // mj_rayHfield; -2: numbers are beyond what cells can be left out for.
  double Cast(const double* pos, const double* mat, const double* from, const double* along) {
    double base_pos[3], top_pos[3], difference[3];
    for (int i = 0; i < 3; ++i) {
      base_pos[i] = pos[i] - mat[3 * i + 2] * size_[3] * 0.5;
      top_pos[i] = pos[i] + mat[3 * i + 2] * size_[2] * 0.5;
      difference[i] = from[i] - pos[i];
    }
    const double base[3] = {size_[0], size_[1], size_[3] * 0.5};
    const double top[3] = {size_[0], size_[1], size_[2] * 0.5};
    nearest_ = mju_rayGeom(base_pos, mat, base, from, along, mjGEOM_BOX, nullptr);
    const double entry = mju_rayGeom(top_pos, mat, top, from, along, mjGEOM_BOX, nullptr);
    if (entry < 0) return nearest_;
    double all[6];
    double top_difference[3];
    for (int i = 0; i < 3; ++i) top_difference[i] = from[i] - top_pos[i];
    TurnBack(from_, mat, top_difference);
    TurnBack(along_, mat, along);
    FindFaces(top, all);
    TurnBack(from_, mat, difference);
    double segment[2] = {0, entry};
    for (const double x : all) {
      if (x > segment[1]) {
        segment[0] = entry;
        segment[1] = x;
      }
    }
    if (!TryCells(segment)) return -2;
    TrySides(all);
    return nearest_;
  }

 private:
  static void TurnBack(double* r, const double* mat, const double* v) {
    for (int i = 0; i < 3; ++i) r[i] = mat[i] * v[0] + mat[3 + i] * v[1] + mat[6 + i] * v[2];
  }

  // Where the ray passes the faces of a box around its frame's origin; -1: nowhere.
  void FindFaces(const double* half, double* all) const {
    for (int i = 0; i < 3; ++i) {
      const int j = i == 0 ? 1 : 0, k = i == 2 ? 1 : 2;
      for (int side = 0; side < 2; ++side) {
        double& x = all[2 * i + side];
        x = -1;
        if (!(std::abs(along_[i]) > mjMINVAL)) continue;
        const double found = ((side == 0 ? -half[i] : half[i]) - from_[i]) / along_[i];
        if (found >= 0 && std::abs(from_[j] + found * along_[j]) <= half[j] &&
            std::abs(from_[k] + found * along_[k]) <= half[k]) {
          x = found;
        }
      }
    }
  }

  void Update(double x) {
    if (x >= 0 && (nearest_ < 0 || x < nearest_)) nearest_ = x;
  }

  // Of the cells that MuJoCo tries, all in a rectangle, those that the ray passes at their heights,
  // in the same order. False: they cannot be told apart.
  bool TryCells(const double* segment) {
    double places[2][2];
    double far = std::abs(from_[0]) + std::abs(from_[1]) + std::abs(from_[2]);
    for (int i = 0; i < 2; ++i) {
      places[0][i] = (from_[0] + segment[i] * along_[0] + size_[0]) / dx_;
      places[1][i] = (from_[1] + segment[i] * along_[1] + size_[1]) / dy_;
      far += segment[i];
    }
    constexpr double kFar = 1e6;  // in cells: then a millionth of a cell is a thousand last places
    if (!(far + size_[0] + size_[1] + size_[2] < kFar * std::min(dx_, dy_))) return false;
    const auto first = [](const double* place) {
      return std::max(0, static_cast<int>(std::floor(std::min(place[0], place[1]))) - 1);
    };
    const auto last = [](const double* place, int count) {
      return std::min(count - 1, static_cast<int>(std::ceil(std::max(place[0], place[1]))) + 1);
    };
    const int cmin = first(places[0]), cmax = last(places[0], ncol_);
    const int rmin = first(places[1]), rmax = last(places[1], nrow_);
    SetPlane();
    constexpr double kMargin = 1e-3;
    const Course u((from_[0] + size_[0]) / dx_, along_[0] / dx_);
    const Course v((from_[1] + size_[1]) / dy_, along_[1] / dy_);
    const double margin = 1e-6 * (far + size_[2]);
    for (int r = rmin; r < rmax; ++r) {
      Span row{-2 * kFar, 2 * kFar};
      row.Clip(r - kMargin, r + 1 + kMargin, v);
      row.Clip(cmin - kMargin, cmax + kMargin, u);
      if (row.empty()) continue;
      const double u1 = u.from + row.begin * u.along, u2 = u.from + row.end * u.along;
      const int from = std::max(cmin, static_cast<int>(std::floor(std::min(u1, u2) - kMargin)));
      const int to = std::min(cmax, static_cast<int>(std::ceil(std::max(u1, u2) + kMargin)));
      for (int c = from; c < to; ++c) {
        Span cell = row;
        cell.Clip(c - kMargin, c + 1 + kMargin, u);
        if (cell.empty()) continue;
        const float* heights = data_ + ptrdiff_t{ncol_} * r + c;
        const auto [low, high] =
            std::minmax({heights[0], heights[1], heights[ncol_], heights[ncol_ + 1]});
        const double z1 = from_[2] + cell.begin * along_[2], z2 = from_[2] + cell.end * along_[2];
        if (std::min(z1, z2) > high * size_[2] + margin) continue;
        if (std::max(z1, z2) < low * size_[2] - margin) continue;
        TryCell(r, c);
      }
    }
    return true;
  }

  // Two directions across the ray.
  void SetPlane() {
    const double x = std::abs(along_[0]), y = std::abs(along_[1]), z = std::abs(along_[2]);
    double other[3] = {1, 1, 1};
    other[x >= y && x >= z ? 0 : y >= z ? 1 : 2] = 0;
    const double scale = -mju_dot3(along_, other) / mju_dot3(along_, along_);
    mju_addScl3(across_[1], other, along_, scale);
    mju_normalize3(across_[1]);
    mju_cross(across_[0], across_[1], along_);
    mju_normalize3(across_[0]);
  }

  void TryCell(int r, int c) {
    const auto corner = [&](int row, int column, double* place) {
      place[0] = dx_ * column - size_[0];
      place[1] = dy_ * row - size_[1];
      place[2] = data_[ptrdiff_t{ncol_} * row + column] * size_[2];
    };
    double triangle[3][3];
    corner(r, c, triangle[0]);
    corner(r, c + 1, triangle[1]);
    corner(r + 1, c + 1, triangle[2]);
    Update(Meet(triangle));
    corner(r + 1, c + 1, triangle[1]);
    corner(r + 1, c, triangle[2]);
    Update(Meet(triangle));
  }

  // mju_rayTriangle.
  double Meet(const double (*v)[3]) const {
    double planar[3][2];
    for (int i = 0; i < 3; ++i) {
      double difference[3];
      mju_sub3(difference, v[i], from_);
      for (int k = 0; k < 2; ++k) planar[i][k] = mju_dot3(across_[k], difference);
    }
    for (int k = 0; k < 2; ++k) {
      if (planar[0][k] > 0 && planar[1][k] > 0 && planar[2][k] > 0) return -1;
      if (planar[0][k] < 0 && planar[1][k] < 0 && planar[2][k] < 0) return -1;
    }
    const double a[4] = {planar[0][0] - planar[2][0], planar[1][0] - planar[2][0],
                         planar[0][1] - planar[2][1], planar[1][1] - planar[2][1]};
    const double b[2] = {-planar[2][0], -planar[2][1]};
    const double determinant = a[0] * a[3] - a[1] * a[2];
    if (std::abs(determinant) < mjMINVAL) return -1;
    const double t0 = (a[3] * b[0] - a[1] * b[1]) / determinant;
    const double t1 = (-a[2] * b[0] + a[0] * b[1]) / determinant;
    if (t0 < 0 || t1 < 0 || t0 + t1 > 1) return -1;
    double edge0[3], edge1[3], back[3], normal[3];
    mju_sub3(edge0, v[0], v[2]);
    mju_sub3(edge1, v[1], v[2]);
    mju_sub3(back, from_, v[2]);
    mju_cross(normal, edge0, edge1);
    const double slope = mju_dot3(along_, normal);
    if (std::abs(slope) < mjMINVAL) return -1;
    return -mju_dot3(back, normal) / slope;
  }

  // The upright sides, below the heights at the edges.
  void TrySides(const double* all) {
    for (int i = 0; i < 4; ++i) {
      if (!(all[i] >= 0 && (all[i] < nearest_ || nearest_ < 0))) continue;
      const double z = (from_[2] + all[i] * along_[2]) / size_[2];
      const bool of_x = i < 2;
      const int count = of_x ? nrow_ : ncol_;
      const double y = of_x ? (from_[1] + all[i] * along_[1] + size_[1]) / dy_
                            : (from_[0] + all[i] * along_[0] + size_[0]) / dx_;
      const double y0 = std::max(0.0, std::min<double>(count - 2, std::floor(y)));
      const ptrdiff_t stride = of_x ? ncol_ : 1;
      const ptrdiff_t edge = i == 1 ? ncol_ - 1 : i == 3 ? ptrdiff_t{nrow_ - 1} * ncol_ : 0;
      const float* heights = data_ + edge + stride * static_cast<ptrdiff_t>(y0);
      const double z0 = heights[0], z1 = heights[stride];
      if (z < z0 * (y0 + 1 - y) + z1 * (y - y0)) nearest_ = all[i];
    }
  }

  const mjtNum* size_;
  const float* data_;
  const int nrow_, ncol_;
  const double dx_, dy_;
  double from_[3], along_[3];
  double across_[2][3];
  double nearest_ = -1;
};

}  // namespace

bool Rays::Suit(const mjModel& m, int sensor) {
  return m.sensor_type[sensor] == mjSENS_RANGEFINDER && m.sensor_objtype[sensor] == mjOBJ_SITE &&
         m.sensor_intprm[ptrdiff_t{mjNSENS} * sensor] == 1 << mjRAYDATA_DIST &&
         m.sensor_datatype[sensor] == mjDATATYPE_REAL &&
         std::all_of(m.geom_type, m.geom_type + m.ngeom,
                     [](int type) { return type <= mjGEOM_MESH; });
}

Rays::Rays(const mjModel& m, const mjData& d) : m_(m), d_(d) {
  geoms_.reserve(static_cast<size_t>(m.ngeom));
  for (int g = 0; g < m.ngeom; ++g) {
    if (!IsVisible(m, g)) continue;
    const mjtNum* pos = d.geom_xpos + ptrdiff_t{3} * g;
    geoms_.push_back({g,
                      m.geom_bodyid[g],
                      m.geom_type[g],
                      {pos[0], pos[1], pos[2]},
                      SquaredRadius(m.geom_type[g], m.geom_size + ptrdiff_t{3} * g)});
  }
}

double Rays::CastAt(const Geom& geom, const double* from, const double* along) const {
  const mjtNum* mat = d_.geom_xmat + ptrdiff_t{9} * geom.id;
  if (geom.type == mjGEOM_MESH) return mj_rayMesh(&m_, &d_, geom.id, from, along, nullptr);
  if (geom.type == mjGEOM_HFIELD) {
    const double x = HeightFieldRay(m_, geom.id).Cast(geom.pos, mat, from, along);
    return x == -2 ? mj_rayHfield(&m_, &d_, geom.id, from, along, nullptr) : x;
  }
  const mjtNum* size = m_.geom_size + ptrdiff_t{3} * geom.id;
  return mju_rayGeom(geom.pos, mat, size, from, along, geom.type, nullptr);
}

double Rays::Cast(const double* from, const double* along, int excluded_body) const {
  const double a = Squared(along);
  double nearest = -1;
  for (const Geom& geom : geoms_) {
    if (geom.body == excluded_body) continue;
    if (geom.squared >= 0) {
      // a x² + 2 b x + c = 0 at the sphere
      double apart[3];
      for (int i = 0; i < 3; ++i) apart[i] = from[i] - geom.pos[i];
      const double b = along[0] * apart[0] + along[1] * apart[1] + along[2] * apart[2];
      const double c = Squared(apart) - geom.squared;
      // no solution, or both are surely behind
      if (b * b - a * c < 0 || (b > 0 && a * c > 1e-12 * b * b)) continue;
      // or surely beyond what is known: before it, the ray comes nearer, but not to the sphere
      const double size = a * nearest * nearest + c + geom.squared;
      if (nearest >= 0 && c > 0 && -b > a * nearest &&
          a * nearest * nearest + 2 * b * nearest + c > 1e-9 * size) {
        continue;
      }
    }
    const double x = CastAt(geom, from, along);
    if (x >= 0 && (x < nearest || nearest < 0)) nearest = x;
  }
  return nearest;
}

}  // namespace pyfastenv::lanes
