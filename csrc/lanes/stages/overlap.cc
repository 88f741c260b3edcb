// Boxes by their separating axes: six of faces, nine across edges.
#include "lanes/stages/overlap.h"

#include <math.h>

#include "lanes/stages/touches.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

void CenterOf(const PlacedBounds& a, double* center) {
  for (int i = 0; i < 3; ++i) {
    center[i] = a.pos[i];
    for (int k = 0; k < 3; ++k) center[i] += a.mat[3 * i + k] * a.bounds.center[k];
  }
}

double Dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

void Column(const double* mat, int k, double* axis) {
  for (int i = 0; i < 3; ++i) axis[i] = mat[3 * i + k];
}

// Half of the length of a box's projection onto a unit axis.
double Reach(const PlacedBounds& a, const double* axis) {
  double reach = 0;
  for (int k = 0; k < 3; ++k) {
    double edge[3];
    Column(a.mat, k, edge);
    reach += a.bounds.half[k] * fabs(Dot(edge, axis));
  }
  return reach;
}

bool OverlapOn(const PlacedBounds& a, const PlacedBounds& b, const double* apart,
               const double* axis, double depth) {
  return Reach(a, axis) + Reach(b, axis) - fabs(Dot(apart, axis)) >= depth;
}

bool BoxesOverlap(const PlacedBounds& a, const PlacedBounds& b, const double* apart, double depth) {
  double edges[2][3][3];
  for (int k = 0; k < 3; ++k) {
    Column(a.mat, k, edges[0][k]);
    Column(b.mat, k, edges[1][k]);
    if (!OverlapOn(a, b, apart, edges[0][k], depth)) return false;
    if (!OverlapOn(a, b, apart, edges[1][k], depth)) return false;
  }
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) {
      const double *u = edges[0][i], *v = edges[1][k];
      double axis[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                        u[0] * v[1] - u[1] * v[0]};
      const double length = sqrt(Dot(axis, axis));
      if (length < 1e-6) continue;  // parallel edges: a face has that axis
      for (double& x : axis) x /= length;
      if (!OverlapOn(a, b, apart, axis, depth)) return false;
    }
  }
  return true;
}

// Whether a sphere about a geom's own frame reaches so deep into the other's box.
bool SphereMeetsBox(const PlacedBounds& sphere, const PlacedBounds& box, double depth) {
  double center[3], apart[3], squared = 0;
  CenterOf(box, center);
  for (int i = 0; i < 3; ++i) apart[i] = sphere.pos[i] - center[i];
  for (int k = 0; k < 3; ++k) {
    double edge[3];
    Column(box.mat, k, edge);
    const double beyond = fabs(Dot(apart, edge)) - box.bounds.half[k];
    if (beyond > 0) squared += beyond * beyond;
  }
  const double reach = sphere.bounds.radius - depth;
  return reach > 0 && squared <= reach * reach;
}

}  // namespace

bool BoundsOverlap(const PlacedBounds& a, const PlacedBounds& b, double depth, bool spheres) {
  double center_a[3], center_b[3], apart[3];
  CenterOf(a, center_a);
  CenterOf(b, center_b);
  for (int i = 0; i < 3; ++i) apart[i] = center_b[i] - center_a[i];
  if (!BoxesOverlap(a, b, apart, depth)) return false;
  if (!spheres) return true;
  for (int i = 0; i < 3; ++i) apart[i] = b.pos[i] - a.pos[i];
  const double reach = a.bounds.radius + b.bounds.radius - depth;
  return Dot(apart, apart) <= reach * reach && SphereMeetsBox(a, b, depth) &&
         SphereMeetsBox(b, a, depth);
}

namespace {

struct PlacedBox {
  PlacedBox(const Tables& t, const Scratch& s, int geom)
      : half(t.bounds[geom].half), mat(s.geom_xmat + 9 * geom) {
    Rotate(center, mat, t.bounds[geom].center);
    for (int i = 0; i < 3; ++i) center[i] = center[i] + s.geom_xpos[3 * geom + i];
  }

  const double* half;
  const Lane* mat;  // whose columns are the faces' normals
  Lane center[3];
};

}  // namespace

unsigned BoxesApart(const Tables& t, const Scratch& s, const Pair& pair) {
  const PlacedBox b(t, s, pair.geom2);
  Lane between[3];
  if (pair.plane) {
    Lane normal[3], cosine[3];
    AxisOf(s, pair.geom1, normal);
    for (int i = 0; i < 3; ++i) between[i] = b.center[i] - s.geom_xpos[3 * pair.geom1 + i];
    RotateBack(cosine, b.mat, normal);
    Lane gap = Dot3(between, normal);
    for (int k = 0; k < 3; ++k) gap = gap - b.half[k] * Abs(cosine[k]);
    return Bits(gap > pair.apart) & kAllLanes;
  }
  const PlacedBox a(t, s, pair.geom1);
  for (int i = 0; i < 3; ++i) between[i] = b.center[i] - a.center[i];
  Lane along_a[3], along_b[3], reach_a[3], reach_b[3];
  RotateBack(along_a, a.mat, between);
  RotateBack(along_b, b.mat, between);
  for (int i = 0; i < 3; ++i) {
    reach_a[i] = Splat(a.half[i]);
    reach_b[i] = Splat(b.half[i]);
  }
  for (int k = 0; k < 3; ++k) {
    Lane normal[3], cosine[3];
    for (int i = 0; i < 3; ++i) normal[i] = b.mat[3 * i + k];
    RotateBack(cosine, a.mat, normal);
    for (int i = 0; i < 3; ++i) {
      reach_a[i] = reach_a[i] + Abs(cosine[i]) * b.half[k];
      reach_b[k] = reach_b[k] + Abs(cosine[i]) * a.half[i];
    }
  }
  Mask apart = Splat(0) > 0.0;
  for (int i = 0; i < 3; ++i) {
    apart = apart | (Abs(along_a[i]) - reach_a[i] > pair.apart);
    apart = apart | (Abs(along_b[i]) - reach_b[i] > pair.apart);
  }
  return Bits(apart) & kAllLanes;
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
