#include "lanes/bounding_volumes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lanes/features.h"

namespace pyfastenv::lanes {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Box BoxAt(const mjtNum* aabb) {
  Box box{};
  std::copy_n(aabb, 3, box.center);
  std::copy_n(aabb + 3, 3, box.half);
  return box;
}

// The length of what of `inner` sticks out of `outer`, over all directions.
double SticksOut(const Box& inner, const Box& outer) {
  double squared = 0;
  for (int i = 0; i < 3; ++i) {
    if (outer.half[i] >= mjMAXVAL) continue;  // MuJoCo asks nothing of infinite directions
    const double above = (inner.center[i] + inner.half[i]) - (outer.center[i] + outer.half[i]);
    const double below = (outer.center[i] - outer.half[i]) - (inner.center[i] - inner.half[i]);
    const double out = std::max({0.0, above, below});
    squared += out * out;
  }
  return std::sqrt(squared);
}

Box FromTo(const double* low, const double* high) {
  Box box{};
  for (int i = 0; i < 3; ++i) {
    box.center[i] = (low[i] + high[i]) / 2;
    box.half[i] = (high[i] - low[i]) / 2;
  }
  return box;
}

Box HeightField(const mjModel& m, int id) {
  const mjtNum* extent = m.hfield_size + ptrdiff_t{4} * id;
  const float* heights = m.hfield_data + m.hfield_adr[id];
  const int count = m.hfield_nrow[id] * m.hfield_ncol[id];
  const auto [least, most] = std::minmax_element(heights, heights + count);
  const double bottom = *least, top = *most;
  const double low[3] = {-extent[0], -extent[1], std::min(-extent[3], extent[2] * bottom)};
  const double high[3] = {extent[0], extent[1], extent[2] * std::max(1.0, top)};
  return FromTo(low, high);
}

Box Mesh(const mjModel& m, int id) {
  const float* vertex = m.mesh_vert + ptrdiff_t{3} * m.mesh_vertadr[id];
  double low[3] = {vertex[0], vertex[1], vertex[2]}, high[3] = {low[0], low[1], low[2]};
  for (int v = 1; v < m.mesh_vertnum[id]; ++v) {
    for (int i = 0; i < 3; ++i) {
      low[i] = std::min<double>(low[i], vertex[3 * v + i]);
      high[i] = std::max<double>(high[i], vertex[3 * v + i]);
    }
  }
  return FromTo(low, high);
}

// Around a geom as its sizes are now, in its frame.
Box ShapeOf(const mjModel& m, int geom, const Box& fixed) {
  const mjtNum* size = m.geom_size + ptrdiff_t{3} * geom;
  switch (m.geom_type[geom]) {
    case mjGEOM_SPHERE:
      return {{}, {size[0], size[0], size[0]}};
    case mjGEOM_CAPSULE:
      return {{}, {size[0], size[0], size[0] + size[1]}};
    case mjGEOM_CYLINDER:
      return {{}, {size[0], size[0], size[1]}};
    case mjGEOM_ELLIPSOID:
    case mjGEOM_BOX:
      return {{}, {size[0], size[1], size[2]}};
    case mjGEOM_HFIELD:
    case mjGEOM_MESH:
      return fixed;
    default:  // a plane
      return BoxAt(m.geom_aabb + ptrdiff_t{6} * geom);
  }
}

// The radius of the sphere about the frame's origin that encloses the shape.
double RadiusOf(const mjModel& m, int geom, const Box& box) {
  const int type = m.geom_type[geom];
  if (type == mjGEOM_SPHERE || type == mjGEOM_CAPSULE) return box.half[2];
  if (type == mjGEOM_ELLIPSOID) return *std::max_element(box.half, box.half + 3);
  double squared = 0;
  for (int i = 0; i < 3; ++i) {
    if (type == mjGEOM_CYLINDER && i == 1) continue;
    const double most = std::abs(box.center[i]) + box.half[i];
    squared += most * most;
  }
  return std::sqrt(squared);
}

// A frame in its body's: mj_kinematics'.
struct Frame {
  Frame(const mjModel& m, int body, int same, const mjtNum* own_pos, const mjtNum* own_quat) {
    constexpr mjtNum kNone[4] = {1, 0, 0, 0};
    const bool turned = same == mjSAMEFRAME_NONE;
    const bool inertia = same == mjSAMEFRAME_INERTIA,
               turns = inertia || same == mjSAMEFRAME_INERTIAROT;
    const mjtNum* quat = turned ? own_quat : turns ? m.body_iquat + ptrdiff_t{4} * body : kNone;
    mju_zero3(pos);
    if (inertia) mju_copy3(pos, m.body_ipos + ptrdiff_t{3} * body);
    if (same != mjSAMEFRAME_BODY && !inertia) mju_copy3(pos, own_pos);
    mju_quat2Mat(mat, quat);
  }

  mjtNum pos[3], mat[9];
};

Frame OfGeom(const mjModel& m, int geom) {
  return {m, m.geom_bodyid[geom], m.geom_sameframe[geom], m.geom_pos + ptrdiff_t{3} * geom,
          m.geom_quat + ptrdiff_t{4} * geom};
}

Frame OfInertia(const mjModel& m, int body) {
  return {m, body, m.body_sameframe[body], m.body_ipos + ptrdiff_t{3} * body,
          m.body_iquat + ptrdiff_t{4} * body};
}

// A geom's box in the frame of its body's inertia, in which the tree stands.
Box InFrameOfInertia(const Frame& from, const Frame& to, const Box& box) {
  mjtNum turn[9], offset[3], center[3];
  mju_mulMatTMat(turn, to.mat, from.mat, 3, 3, 3);
  mju_sub3(offset, from.pos, to.pos);
  mju_mulMatTVec3(center, to.mat, offset);
  Box r{};
  for (int i = 0; i < 3; ++i) {
    r.center[i] = center[i];
    for (int k = 0; k < 3; ++k) {
      r.center[i] += turn[3 * i + k] * box.center[k];
      r.half[i] += std::abs(turn[3 * i + k]) * box.half[k];
    }
  }
  return r;
}

// Whether MuJoCo tries a body against all others: the world, and fixed bodies that have planes.
bool CollidesAlways(const mjModel& m, int body) {
  const int* types = m.geom_type + m.body_geomadr[body];
  const int* end = types + m.body_geomnum[body];
  return body == 0 ||
         (m.body_dofnum[m.body_weldid[body]] == 0 && std::find(types, end, mjGEOM_PLANE) != end);
}

// What is lost of a geom's touches by the planes of its body. Planes' boxes are 1e10 wide, so every
// sum that MuJoCo makes of their numbers is rounded to 2^-20: of an upright plane at height 0 the
// sum of both radii and the difference of the centers; the margin's and the height's, if there are
// any; and those of the boxes that the compiler puts around several geoms. Planes that are turned
// also lose what their normals' lengths are off by. (A box around planes that face several ways has
// no end where one of them can be touched.)
double PlaneBlur(const mjModel& m, int geom, double reach) {
  constexpr double kHalfPlace = 0x1p-21, kTurned = 2e-5;
  const int body = m.geom_bodyid[geom];
  const auto upright = [&](int g) { return body == 0 && m.geom_quat[ptrdiff_t{4} * g] == 1; };
  const bool several = m.body_geomnum[body] > 1;
  if (m.geom_type[geom] == mjGEOM_PLANE) {
    if (!upright(geom)) return kTurned;
    const int sums = 2 + static_cast<int>(reach != 0) +
                     static_cast<int>(m.geom_pos[ptrdiff_t{3} * geom + 2] != 0) + (several ? 4 : 0);
    return sums * kHalfPlace;
  }
  double blur = 0;
  for (int g = m.body_geomadr[body]; g < m.body_geomadr[body] + m.body_geomnum[body]; ++g) {
    if (m.geom_type[g] == mjGEOM_PLANE)
      blur = std::max(blur, upright(g) ? 8 * kHalfPlace : kTurned);
  }
  return blur;
}

// How far the box around a body's tree reaches from its frame; planes' boxes are PlaneBlur's.
double SizeOfTree(const mjModel& m, int body) {
  const Box root = BoxAt(m.bvh_aabb + ptrdiff_t{6} * m.body_bvhadr[body]);
  double size = 0;
  for (int i = 0; i < 3; ++i) {
    const double most = std::abs(root.center[i]) + root.half[i];
    if (most < mjMAXVAL / 4) size += most;
  }
  return size;
}

// Whether a distance may be less than the true one where two geoms do not overlap: along the best
// of some axes, or from shapes blown up by the margin.
bool UnderestimatesDistance(const mjModel& m, const GeomPair& pair) {
  const bool boxes = m.geom_type[pair.geom1] == mjGEOM_BOX && m.geom_type[pair.geom2] == mjGEOM_BOX;
  return boxes || (!HasOwnCollision(m, pair) && IsOff(m, mjDSBL_NATIVECCD));
}

// Whether a frame that is turned by it neither shrinks nor grows.
bool IsUnit(const mjtNum* quat) {
  const double squared =
      quat[0] * quat[0] + quat[1] * quat[1] + quat[2] * quat[2] + quat[3] * quat[3];
  return std::abs(squared - 1) < 1e-9;
}

}  // namespace

std::vector<Box> FixedShapes(const mjModel& m) {
  std::vector<Box> shapes(static_cast<size_t>(m.ngeom));
  for (int g = 0; g < m.ngeom; ++g) {
    Box& shape = shapes[static_cast<size_t>(g)];
    if (m.geom_type[g] == mjGEOM_HFIELD) shape = HeightField(m, m.geom_dataid[g]);
    if (m.geom_type[g] == mjGEOM_MESH) shape = Mesh(m, m.geom_dataid[g]);
  }
  return shapes;
}

BoundingVolumes::BoundingVolumes(const mjModel& m, const std::vector<Box>& fixed)
    : excess_(static_cast<size_t>(m.ngeom)) {
  std::vector<Box> shapes;
  for (int g = 0; g < m.ngeom; ++g) {
    auto& excess = excess_[static_cast<size_t>(g)];
    shapes.push_back(ShapeOf(m, g, fixed[static_cast<size_t>(g)]));
    excess.own = SticksOut(shapes.back(), BoxAt(m.geom_aabb + ptrdiff_t{6} * g));
    const double beyond_sphere = RadiusOf(m, g, shapes.back()) - m.geom_rbound[g];
    excess.swept = std::max(excess.own, beyond_sphere);
    const int body = m.geom_bodyid[g];
    if (!IsUnit(m.geom_quat + ptrdiff_t{4} * g) || !IsUnit(m.body_iquat + ptrdiff_t{4} * body)) {
      excess = {kInfinity, kInfinity, kInfinity};  // frames that shrink or grow
    }
  }
  for (int b = 0; b < m.nbody; ++b) {
    if (m.body_bvhadr[b] >= 0) DescendTree(m, shapes, b);
  }
}

// Sets how far a body's geoms stick out of the nodes above them.
void BoundingVolumes::DescendTree(const mjModel& m, const std::vector<Box>& shapes, int body) {
  const int first = m.body_bvhadr[body], count = m.body_bvhnum[body];
  std::vector<int> parent(static_cast<size_t>(count), -1);
  for (int node = 0; node < count; ++node) {
    for (int side = 0; side < 2; ++side) {
      const int child = m.bvh_child[2 * (first + node) + side];
      if (child >= 0) parent[static_cast<size_t>(child)] = node;
    }
  }
  const Frame inertia = OfInertia(m, body);
  for (int leaf = 0; leaf < count; ++leaf) {
    const int geom = m.bvh_nodeid[first + leaf];
    if (geom < 0) continue;
    const Frame own = OfGeom(m, geom);
    const Box shape = InFrameOfInertia(own, inertia, shapes[static_cast<size_t>(geom)]);
    const Box box = InFrameOfInertia(own, inertia, BoxAt(m.geom_aabb + ptrdiff_t{6} * geom));
    auto& excess = excess_[static_cast<size_t>(geom)];
    for (int node = leaf; node >= 0; node = parent[static_cast<size_t>(node)]) {
      const Box above = BoxAt(m.bvh_aabb + ptrdiff_t{6} * (first + node));
      excess.nodes = std::max({excess.nodes, SticksOut(shape, above), SticksOut(box, above)});
    }
  }
}

Sight BoundingVolumes::Of(const mjModel& m, const GeomPair& pair, double reach) const {
  Sight sight{kInfinity, 0, 0, false};
  if (pair.explicit_pair >= 0) return sight;
  const int body1 = m.geom_bodyid[pair.geom1], body2 = m.geom_bodyid[pair.geom2];
  const bool swept = !CollidesAlways(m, body1) && !CollidesAlways(m, body2);
  const bool middle = HasMiddlePhase(m, body1, body2);
  if (!swept && !middle) return sight;
  const auto &excess1 = excess_[static_cast<size_t>(pair.geom1)],
             &excess2 = excess_[static_cast<size_t>(pair.geom2)];
  // of doubles in sums of the volumes' own sizes, however near the origin they meet
  constexpr double kDoublePrecision = 0x1p-46;  // a hundred last places
  double size = m.geom_rbound[pair.geom1] + m.geom_rbound[pair.geom2] + std::abs(reach);
  double blur = 0, margin = reach, excess = 0;
  if (!HasOwnCollision(m, pair)) blur = 2 * m.opt.ccd_tolerance;  // what iterations may be off by
  if (swept) {
    constexpr double kSinglePrecision = 0x1p-22;  // of two bounds, twice over
    sight.rounding = kSinglePrecision;
    sight.distance = reach - excess1.swept - excess2.swept;
    sight.swept = true;
  }
  if (middle) {
    size += SizeOfTree(m, body1) + SizeOfTree(m, body2);
    sight.rounding = std::max(sight.rounding, kDoublePrecision);
    const double boxes = reach - excess1.own - excess2.own;
    margin = std::min(reach, m.body_margin[body1] + m.body_margin[body2]);
    excess = excess1.nodes + excess2.nodes;
    sight.distance = std::min({sight.distance, boxes, margin - excess});
    blur += std::max(PlaneBlur(m, pair.geom1, reach), PlaneBlur(m, pair.geom2, reach));
  }
  if (UnderestimatesDistance(m, pair)) sight.distance = std::min(sight.distance, 0.0);
  sight.distance -= blur + kDoublePrecision * size;
  constexpr double kSurely = 1e-9;
  sight.overlap = kSurely + excess + std::max(0.0, -margin);
  if (sight.distance == -kInfinity) sight.overlap = kInfinity;
  return sight;
}

double BoundingVolumes::ApartFrom(const mjModel& m, const GeomPair& pair, double reach) const {
  constexpr double kSurely = 1e-6;
  const double stick_out =
      excess_[static_cast<size_t>(pair.geom1)].own + excess_[static_cast<size_t>(pair.geom2)].own;
  return reach + stick_out + kSurely + 2 * m.opt.ccd_tolerance;
}

}  // namespace pyfastenv::lanes
