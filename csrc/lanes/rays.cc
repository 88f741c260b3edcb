#include "lanes/rays.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pyfastenv::lanes {

namespace {

RayShape ShapeOf(int type) {
  switch (type) {
    case mjGEOM_PLANE:
      return RayShape::kPlane;
    case mjGEOM_SPHERE:
      return RayShape::kSphere;
    case mjGEOM_CAPSULE:
      return RayShape::kCapsule;
    case mjGEOM_CYLINDER:
      return RayShape::kCylinder;
    case mjGEOM_BOX:
    case mjGEOM_MESH:  // the box around it
      return RayShape::kBox;
    case mjGEOM_HFIELD:
      return RayShape::kHeightField;
    default:
      return RayShape::kOther;
  }
}

// ---- height fields ------------------------------------------------------------------------------

// Heights are known by squares of so many cells, too.
constexpr int kBlock = 8;

int CountBlocks(int num_heights) { return (num_heights - 1 + kBlock - 1) / kBlock; }

// The lowest and the highest place of every block, by rows.
std::vector<Heights> HeightsOfBlocks(const float* data, int nrow, int ncol) {
  std::vector<Heights> blocks;
  for (int row = 0; row + 1 < nrow; row += kBlock) {
    for (int column = 0; column + 1 < ncol; column += kBlock) {
      Heights all{data[ptrdiff_t{ncol} * row + column], data[ptrdiff_t{ncol} * row + column]};
      for (int r = row; r <= std::min(row + kBlock, nrow - 1); ++r) {
        const float* begin = data + ptrdiff_t{ncol} * r + column;
        const auto [low, high] =
            std::minmax_element(begin, begin + std::min(kBlock + 1, ncol - column));
        all = {std::min(all.low, *low), std::max(all.high, *high)};
      }
      blocks.push_back(all);
    }
  }
  return blocks;
}

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
  HeightFieldRay(const mjModel& m, int field, const Heights* blocks)
      : size_(m.hfield_size + ptrdiff_t{4} * field),
        data_(m.hfield_data + m.hfield_adr[field]),
        blocks_(blocks),
        nrow_(m.hfield_nrow[field]),
        ncol_(m.hfield_ncol[field]),
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
    if (!FindCells(segment)) return -2;
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

  // Of the cells that MuJoCo tries, all in a rectangle, tries those that the ray passes at their
  // heights. False: they cannot be told apart.
  bool FindCells(const double* segment) {
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
    u_ = {(from_[0] + size_[0]) / dx_, along_[0] / dx_};
    v_ = {(from_[1] + size_[1]) / dy_, along_[1] / dy_};
    z_ = {from_[2], along_[2]};
    margin_ = 1e-6 * (far + size_[2]);
    TryBlocks({rmin, rmax, cmin, cmax});
    return true;
  }

  struct Rectangle {
    int row, row_end, column, column_end;
  };

  // Whether the ray's line passes a square of cells, so many wide, at its heights.
  bool Passes(int row, int column, int size, const Heights& heights) const {
    constexpr double kMargin = 1e-3, kInfinity = std::numeric_limits<double>::infinity();
    Span span{-kInfinity, kInfinity};
    span.Clip(row - kMargin, row + size + kMargin, v_);
    span.Clip(column - kMargin, column + size + kMargin, u_);
    span.Clip(heights.low * size_[2] - margin_, heights.high * size_[2] + margin_, z_);
    return !span.empty();
  }

  void TryBlocks(const Rectangle& all) {
    const int blocks_in_row = CountBlocks(ncol_);
    for (int r = all.row / kBlock; r * kBlock < all.row_end; ++r) {
      for (int c = all.column / kBlock; c * kBlock < all.column_end; ++c) {
        const Heights& heights = blocks_[ptrdiff_t{blocks_in_row} * r + c];
        if (!Passes(r * kBlock, c * kBlock, kBlock, heights)) continue;
        const auto end = [](int block, int most) { return std::min((block + 1) * kBlock, most); };
        TryCells({std::max(r * kBlock, all.row), end(r, all.row_end),
                  std::max(c * kBlock, all.column), end(c, all.column_end)});
      }
    }
  }

  void TryCells(const Rectangle& all) {
    for (int r = all.row; r < all.row_end; ++r) {
      for (int c = all.column; c < all.column_end; ++c) {
        const float* heights = data_ + ptrdiff_t{ncol_} * r + c;
        const auto [low, high] =
            std::minmax({heights[0], heights[1], heights[ncol_], heights[ncol_ + 1]});
        if (Passes(r, c, 1, {low, high})) TryCell(r, c);
      }
    }
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
  const Heights* blocks_;
  const int nrow_, ncol_;
  const double dx_, dy_;
  double from_[3], along_[3];
  double across_[2][3];
  double nearest_ = -1;
  Course u_{0, 0}, v_{0, 0}, z_{0, 0};  // the first two in cells
  double margin_;
};

// How much higher, along the horizontal, a field's steepest triangle becomes.
double SteepestSlope(const mjModel& m, int field) {
  const int nrow = m.hfield_nrow[field], ncol = m.hfield_ncol[field];
  const mjtNum* size = m.hfield_size + ptrdiff_t{4} * field;
  const float* data = m.hfield_data + m.hfield_adr[field];
  double steps[2] = {0, 0};  // from column to column, from row to row
  for (int r = 0; r < nrow; ++r) {
    for (int c = 0; c < ncol; ++c) {
      const float* here = data + ptrdiff_t{ncol} * r + c;
      const double height = *here;
      if (c + 1 < ncol) steps[0] = std::max(steps[0], std::abs(here[1] - height));
      if (r + 1 < nrow) steps[1] = std::max(steps[1], std::abs(here[ncol] - height));
    }
  }
  return size[2] *
         std::hypot(steps[0] * (ncol - 1) / (2 * size[0]), steps[1] * (nrow - 1) / (2 * size[1]));
}

}  // namespace

bool Rays::Suit(const mjModel& m, int sensor) {
  return m.sensor_type[sensor] == mjSENS_RANGEFINDER && m.sensor_objtype[sensor] == mjOBJ_SITE &&
         m.sensor_intprm[ptrdiff_t{mjNSENS} * sensor] == 1 << mjRAYDATA_DIST &&
         m.sensor_datatype[sensor] == mjDATATYPE_REAL &&
         std::all_of(m.geom_type, m.geom_type + m.ngeom,
                     [](int type) { return type <= mjGEOM_MESH; });
}

std::vector<RayTarget> Rays::Targets(const mjModel& m) {
  std::vector<RayTarget> targets;
  for (int g = 0; g < m.ngeom; ++g) {
    if (!IsVisible(m, g)) continue;
    RayTarget& target = targets.emplace_back();
    target = {};
    target.shape = ShapeOf(m.geom_type[g]);
    target.geom = g;
    if (target.shape != RayShape::kHeightField) continue;
    const int field = m.geom_dataid[g];
    const mjtNum* size = m.hfield_size + ptrdiff_t{4} * field;
    const float* data = m.hfield_data + m.hfield_adr[field];
    const auto [low, high] =
        std::minmax_element(data, data + ptrdiff_t{m.hfield_nrow[field]} * m.hfield_ncol[field]);
    std::copy_n(size, 2, target.half);
    target.steepest = SteepestSlope(m, field);
    target.low = std::min(-size[3], *low * size[2]);
    target.high = std::max(0.0, *high * size[2]);
  }
  const auto turn = [&](const RayTarget& target) {
    if (target.shape == RayShape::kPlane) return 0;
    const bool large =
        target.shape == RayShape::kHeightField || m.geom_type[target.geom] == mjGEOM_MESH;
    return large ? 2 : 1;
  };
  std::stable_sort(targets.begin(), targets.end(),
                   [&](const auto& a, const auto& b) { return turn(a) < turn(b); });
  return targets;
}

Rays::Rays(const mjModel& m, const Tables& tables)
    : m_(m), blocks_(static_cast<size_t>(m.nhfield)) {
  const SensorTable& sensors = tables.sensors;
  for (int k = 0; k < sensors.num_targets; ++k) {
    const RayTarget& target = sensors.target[k];
    if (target.shape != RayShape::kHeightField) continue;
    const int i = m.geom_dataid[target.geom];
    blocks_[static_cast<size_t>(i)] =
        HeightsOfBlocks(m.hfield_data + m.hfield_adr[i], m.hfield_nrow[i], m.hfield_ncol[i]);
  }
}

double Rays::Cast(const RayTarget& target, const GeomPlace& place, const double* from,
                  const double* along, mjData& d) const {
  const int geom = target.geom;
  if (target.shape != RayShape::kHeightField) {
    return mju_rayGeom(place.pos, place.mat, place.size, from, along, m_.geom_type[geom], nullptr);
  }
  const int field = m_.geom_dataid[geom];
  const double x = HeightFieldRay(m_, field, blocks_[static_cast<size_t>(field)].data())
                       .Cast(place.pos, place.mat, from, along);
  if (x != -2) return x;
  std::copy_n(place.pos, 3, d.geom_xpos + ptrdiff_t{3} * geom);
  std::copy_n(place.mat, 9, d.geom_xmat + ptrdiff_t{9} * geom);
  return mj_rayHfield(&m_, &d, geom, from, along, nullptr);
}

}  // namespace pyfastenv::lanes
