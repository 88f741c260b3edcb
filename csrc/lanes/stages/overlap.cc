// Boxes by their separating axes: six of faces, nine across edges.
#include "lanes/stages/overlap.h"

#include <math.h>

#include "lanes/stages/spatial.h"

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
    const double* local = t.bounds[geom].center;
    for (int i = 0; i < 3; ++i) {
      center[i] = s.geom_xpos[3 * geom + i] +
                  (mat[3 * i] * local[0] + mat[3 * i + 1] * local[1] + mat[3 * i + 2] * local[2]);
    }
  }
  void Normal(int k, Lane* normal) const {
    for (int i = 0; i < 3; ++i) normal[i] = mat[3 * i + k];
  }

  const double* half;
  const Lane* mat;
  Lane center[3];
};

}  // namespace

unsigned BoxesApart(const Tables& t, const Scratch& s, const Pair& pair) {
  const PlacedBox b(t, s, pair.geom2);
  Lane between[3], normal[3];
  if (pair.plane) {
    for (int i = 0; i < 3; ++i) {
      between[i] = b.center[i] - s.geom_xpos[3 * pair.geom1 + i];
      normal[i] = s.geom_xmat[9 * pair.geom1 + 3 * i + 2];
    }
    Lane gap = Dot3(between, normal);
    for (int k = 0; k < 3; ++k) {
      Lane edge[3];
      b.Normal(k, edge);
      gap = gap - b.half[k] * Abs(Dot3(edge, normal));
    }
    return Bits(gap > pair.apart) & kAllLanes;
  }
  const PlacedBox a(t, s, pair.geom1);
  Lane cosine[3][3];  // of the angles of normals, without their signs
  for (int i = 0; i < 3; ++i) between[i] = b.center[i] - a.center[i];
  for (int i = 0; i < 3; ++i) {
    a.Normal(i, normal);
    for (int k = 0; k < 3; ++k) {
      Lane other[3];
      b.Normal(k, other);
      cosine[i][k] = Abs(Dot3(normal, other));
    }
  }
  Mask apart = Splat(0) > 0.0;
  for (int i = 0; i < 3; ++i) {
    a.Normal(i, normal);
    const Lane reach =
        cosine[i][0] * b.half[0] + cosine[i][1] * b.half[1] + cosine[i][2] * b.half[2];
    apart = apart | (Abs(Dot3(between, normal)) - reach > a.half[i] + pair.apart);
  }
  for (int k = 0; k < 3; ++k) {
    b.Normal(k, normal);
    const Lane reach =
        cosine[0][k] * a.half[0] + cosine[1][k] * a.half[1] + cosine[2][k] * a.half[2];
    apart = apart | (Abs(Dot3(between, normal)) - reach > b.half[k] + pair.apart);
  }
  return Bits(apart) & kAllLanes;
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
