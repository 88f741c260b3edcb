// Spatial tendons: straight from site to site, or round a sphere or cylinder between two. Whether a
// path bends, and where it touches, MuJoCo's own mju_wrap says, lane by lane.
#include "lanes/stages/passive.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

// The length of the path round a shape and the points where it begins and ends; negative: none.
extern "C" double mju_wrap(double points[6], const double x0[3], const double x1[3],
                           const double pos[3], const double mat[9], double radius, int type,
                           const double* side);

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

Lane Distance(const Lane* a, const Lane* b) {
  const Lane difference[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
  return Sqrt(Dot3(difference, difference));
}

// A straight leg of a tendon, between points that move with bodies.
struct Leg {
  const TendonPoint& from;
  const Lane* start;
  const TendonPoint& to;
  const Lane* end;
};

// From the centre of mass of a body's tree, about which dofs are, to a point of the body.
void Arm(const Tables& t, const Scratch& s, const TendonPoint& point, const Lane* pos, Lane* arm) {
  const Lane* center = s.subtree_com + 3 * t.body[point.body].root;
  for (int i = 0; i < 3; ++i) arm[i] = pos[i] - center[i];
}

// Adds how a leg's length changes with each dof, in some lanes.
void AddJacobian(const Tables& t, Scratch& s, int tendon, const Leg& leg, double divisor,
                 unsigned lanes) {
  if (leg.from.body == leg.to.body) return;
  Lane direction[3], start_arm[3], end_arm[3];
  for (int i = 0; i < 3; ++i) direction[i] = leg.end[i] - leg.start[i];
  Normalize3(direction);
  Arm(t, s, leg.from, leg.start, start_arm);
  Arm(t, s, leg.to, leg.end, end_arm);
  const unsigned char* moves_start = t.moves + leg.from.body * t.nv;
  const unsigned char* moves_end = t.moves + leg.to.body * t.nv;
  const double share = 1 / divisor;
  const int begin = t.ten_J.rowadr[tendon], end = begin + t.ten_J.rownnz[tendon];
  for (int k = begin; k < end; ++k) {
    const int dof = t.ten_J.colind[k];
    if (moves_start[dof] == 0 && moves_end[dof] == 0) continue;
    const Lane* motion = s.cdof + 6 * dof;
    Lane moved[3] = {Splat(0), Splat(0), Splat(0)};
    if (moves_end[dof] != 0) MovePoint(moved, motion, end_arm);
    if (moves_start[dof] != 0) {
      Lane first[3];
      MovePoint(first, motion, start_arm);
      for (int i = 0; i < 3; ++i) moved[i] = moved[i] - first[i];
    }
    const Lane sum = s.ten_J[k] + DotFromZero(moved, direction) * share;
    s.ten_J[k] = lanes == kAllLanes ? sum : Select(FromBits(lanes), sum, s.ten_J[k]);
  }
}

// Where a path meets a geom and where it leaves it, and the length between.
struct Bend {
  unsigned lanes;  // that have one
  Lane start[3], end[3], length;
};

void CopyLane(const Lane* from, int count, int l, double* to) {
  for (int i = 0; i < count; ++i) to[i] = At(from[i], l);
}

// Lanes in which mju_wrap leaves the path straight beyond doubt, whatever is rounded how: the line
// passes the circle by the side site's side of it, or crosses the one that it is to stay within.
unsigned SurelyStraight(const Scratch& s, const TendonPiece& piece) {
  constexpr double kRounding = 1e-9;
  const Lane* center = s.geom_xpos + 3 * piece.geom.index;
  const Lane* axis = s.geom_xmat + 9 * piece.geom.index + 2;  // a cylinder's: a column
  const auto from_center = [&](int site, Lane* r) {
    for (int i = 0; i < 3; ++i) r[i] = s.site_xpos[3 * site + i] - center[i];
    return Dot3(r, r);
  };
  const auto flatten = [&](Lane* r) {
    if (!piece.is_cylinder) return;
    const Lane along = r[0] * axis[0] + r[1] * axis[3] + r[2] * axis[6];
    for (int i = 0; i < 3; ++i) r[i] = r[i] - along * axis[3 * i];
  };
  const double square_radius = piece.radius * piece.radius;
  Lane start[3], line[3], nearest[3];
  Lane size = from_center(piece.site1.index, start) + square_radius;
  size = size + from_center(piece.site2.index, line);
  flatten(start);
  flatten(line);
  for (int i = 0; i < 3; ++i) line[i] = line[i] - start[i];
  const Lane share = Clip(-Dot3(start, line) / Dot3(line, line), 0, 1);
  for (int i = 0; i < 3; ++i) nearest[i] = start[i] + share * line[i];
  const Lane slack = kRounding * size, square_distance = Dot3(nearest, nearest);
  const unsigned passes = Bits(square_distance - slack > square_radius);
  if (piece.side < 0) return passes;

  Lane side[3];
  const Lane square_side = from_center(piece.side, side);
  flatten(side);
  const unsigned by_side = Bits(Dot3(side, nearest) > kRounding * Sqrt(square_side * size));
  const unsigned within = Bits(square_side < square_radius * (1 - kRounding));
  const unsigned without = Bits(square_side > square_radius * (1 + kRounding));
  const unsigned crosses = Bits(square_distance + slack < square_radius);
  return (without & passes & by_side) | (within & crosses);
}

Bend FindBend(const Scratch& s, const TendonPiece& piece) {
  Bend bend{};
  const unsigned straight = SurelyStraight(s, piece);
  for (int l = 0; l < kWidth; ++l) {
    if ((straight >> l & 1) != 0) continue;
    double from[3], to[3], pos[3], mat[9], side[3], points[6];
    CopyLane(s.site_xpos + 3 * piece.site1.index, 3, l, from);
    CopyLane(s.site_xpos + 3 * piece.site2.index, 3, l, to);
    CopyLane(s.geom_xpos + 3 * piece.geom.index, 3, l, pos);
    CopyLane(s.geom_xmat + 9 * piece.geom.index, 9, l, mat);
    if (piece.side >= 0) CopyLane(s.site_xpos + 3 * piece.side, 3, l, side);
    const double length = mju_wrap(points, from, to, pos, mat, piece.radius, piece.shape,
                                   piece.side >= 0 ? side : nullptr);
    if (!(length >= 0)) continue;
    bend.lanes |= 1u << l;
    At(bend.length, l) = length;
    for (int i = 0; i < 3; ++i) {
      At(bend.start[i], l) = points[i];
      At(bend.end[i], l) = points[3 + i];
    }
  }
  return bend;
}

void AddPiece(const Tables& t, Scratch& s, int tendon, const TendonPiece& piece) {
  const Lane* start = s.site_xpos + 3 * piece.site1.index;
  const Lane* end = s.site_xpos + 3 * piece.site2.index;
  Lane length = Distance(start, end);
  unsigned straight = kAllLanes;
  if (piece.geom.index >= 0) {
    const Bend bend = FindBend(s, piece);
    if (bend.lanes != 0) {
      straight = kAllLanes & ~bend.lanes;
      const Lane round = (Distance(start, bend.start) + bend.length) + Distance(bend.end, end);
      length = Select(FromBits(bend.lanes), round, length);
      AddJacobian(t, s, tendon, {piece.site1, start, piece.geom, bend.start}, piece.divisor,
                  bend.lanes);
      AddJacobian(t, s, tendon, {piece.geom, bend.end, piece.site2, end}, piece.divisor,
                  bend.lanes);
    }
  }
  s.ten_length[tendon] = s.ten_length[tendon] + length / piece.divisor;
  if (straight == 0) return;
  AddJacobian(t, s, tendon, {piece.site1, start, piece.site2, end}, piece.divisor, straight);
}

}  // namespace

void SpatialTendons(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.ntendon; ++i) {
    const Tendon& tendon = t.tendon[i];
    if (tendon.num_pieces == 0) continue;
    ClearTendon(t, s, i);
    for (int k = 0; k < tendon.num_pieces; ++k) {
      AddPiece(t, s, i, t.tendon_piece[tendon.first_piece + k]);
    }
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
