#include "lanes/separation.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace pyfastenv::lanes {

namespace {

constexpr int kMaxIterations = 12, kMaxPatience = 15;

double Dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// r = mat v, and r = matᵀ v.
void Turn(double* r, const double* mat, const double* v) {
  for (int i = 0; i < 3; ++i) r[i] = Dot(mat + 3 * i, v);
}
void TurnBack(double* r, const double* mat, const double* v) {
  for (int i = 0; i < 3; ++i) r[i] = mat[i] * v[0] + mat[3 + i] * v[1] + mat[6 + i] * v[2];
}

// A mesh's vertices, and the edges of its convex hull if it has one, as MuJoCo searches them.
class Mesh {
 public:
  Mesh(const mjModel& m, int id)
      : vertices_(m.mesh_vert + ptrdiff_t{3} * m.mesh_vertadr[id]), count_(m.mesh_vertnum[id]) {
    constexpr int kFew = 10;  // of which MuJoCo tries all
    if (m.mesh_graphadr[id] < 0 || count_ < kFew) return;
    const int* graph = m.mesh_graph + m.mesh_graphadr[id];
    count_ = graph[0];
    first_edge_ = graph + 2;
    ids_ = first_edge_ + count_;
    edges_ = ids_ + count_;
  }

  bool has_hull() const { return ids_ != nullptr; }
  int count() const { return count_; }  // of the hull's vertices, if there is one
  const float* vertex(int k) const { return vertices_ + ptrdiff_t{3} * (has_hull() ? ids_[k] : k); }
  double Along(const double* d, int k) const {
    const float* v = vertex(k);
    return d[0] * v[0] + d[1] * v[1] + d[2] * v[2];
  }

  int Search(const double* d) const {
    int best = 0;
    for (int k = 1; k < count_; ++k) {
      if (Along(d, k) > Along(d, best)) best = k;
    }
    return best;
  }
  int Climb(const double* d, int vertex) const {
    double most = Along(d, vertex);
    for (int from = -1; from != vertex;) {
      from = vertex;
      for (const int* next = edges_ + first_edge_[from]; *next >= 0; ++next) {
        const double reach = Along(d, *next);
        if (!(reach > most)) continue;  // nor where it is not a number
        most = reach;
        vertex = *next;
      }
    }
    return vertex;
  }

 private:
  const float* vertices_;
  int count_;
  const int *first_edge_ = nullptr, *ids_ = nullptr, *edges_ = nullptr;
};

// Whether climbing finds the farthest vertices: not where vertices have been edited since the
// compiler made the hull.
bool ClimbsToTheTop(const Mesh& mesh) {
  constexpr int kDirections = 64;
  constexpr double kRounding = 1e-7;  // less than pairs are apart at least
  const int stride = std::max(1, mesh.count() / kDirections);
  for (int k = 0; k < mesh.count(); k += stride) {
    const float* v = mesh.vertex(k);
    double d[3] = {v[0], v[1], v[2]};
    const double length = std::sqrt(Dot(d, d));
    if (length == 0) continue;
    for (double& x : d) x /= length;
    const double top = mesh.Along(d, mesh.Search(d));
    if (!(top - mesh.Along(d, mesh.Climb(d, 0)) <= kRounding)) return false;
  }
  return true;
}

// Whether MuJoCo's function of the pair searches for support points: others take less time.
bool Iterates(const mjModel& m, const Pair& pair) {
  const mjfCollision function = mjCOLLISIONFUNC[m.geom_type[pair.geom1]][m.geom_type[pair.geom2]];
  return function == mjCOLLISIONFUNC[mjGEOM_MESH][mjGEOM_MESH] ||
         function == mjCOLLISIONFUNC[mjGEOM_PLANE][mjGEOM_MESH];
}

}  // namespace

Separation::Separation(const mjModel& model, const Tables& tables)
    : model_(model),
      tables_(tables),
      is_searched_(static_cast<size_t>(tables.num_pairs)),
      witnesses_(static_cast<size_t>(tables.num_pairs)) {
  std::map<int, bool> convex;
  for (int k = 0; k < tables.num_pairs; ++k) {
    const Pair& pair = tables.pair[k];
    if (pair.kind != PairKind::kOther || !Iterates(model, pair)) continue;
    for (const int geom : {pair.geom1, pair.geom2}) {
      if (!convex.contains(geom)) convex[geom] = IsConvex(geom);
    }
    is_searched_[static_cast<size_t>(k)] = convex[pair.geom1] && convex[pair.geom2];
  }
}

bool Separation::IsConvex(int geom) const {
  const int type = model_.geom_type[geom];
  if (type == mjGEOM_HFIELD || type > mjGEOM_MESH) return false;
  if (type != mjGEOM_MESH) return true;
  const Mesh mesh(model_, model_.geom_dataid[geom]);
  return !mesh.has_hull() || ClimbsToTheTop(mesh);
}

// The geom's farthest point along a unit direction, both in its frame; of a plane, along its
// normal.
void Separation::Support(int geom, const double* d, int& vertex, double* point) const {
  const double* size = model_.geom_size + ptrdiff_t{3} * geom;
  const int type = model_.geom_type[geom];
  double scale[3] = {size[0], size[0], size[0]};
  switch (type) {
    case mjGEOM_PLANE:
      std::fill_n(scale, 3, 0.0);
      break;
    case mjGEOM_ELLIPSOID: {
      double squared = 0;
      for (int i = 0; i < 3; ++i) squared += d[i] * size[i] * (d[i] * size[i]);
      for (int i = 0; i < 3; ++i) scale[i] = size[i] * size[i] / std::sqrt(squared);
      break;
    }
    case mjGEOM_CYLINDER: {
      const double across = std::sqrt(d[0] * d[0] + d[1] * d[1]);
      scale[0] = scale[1] = across > 0 ? size[0] / across : 0;
      scale[2] = 0;
      break;
    }
    case mjGEOM_BOX:
      for (int i = 0; i < 3; ++i) point[i] = std::copysign(size[i], d[i]);
      return;
    case mjGEOM_MESH: {
      const Mesh mesh(model_, model_.geom_dataid[geom]);
      vertex = mesh.has_hull() ? mesh.Climb(d, vertex) : mesh.Search(d);
      std::copy_n(mesh.vertex(vertex), 3, point);
      return;
    }
    default:
      break;
  }
  for (int i = 0; i < 3; ++i) point[i] = d[i] * scale[i];
  if (type == mjGEOM_CAPSULE || type == mjGEOM_CYLINDER) point[2] += std::copysign(size[1], d[2]);
}

// Gilbert's method: x, a point of the difference of both shapes, moves towards the one that is
// farthest against it, until that is on x's side of the origin, and far enough.
bool Separation::IsCertain(int index, const double* pos1, const double* mat1, const double* pos2,
                           const double* mat2) {
  if (!is_searched_[static_cast<size_t>(index)]) return false;
  const Pair& pair = tables_.pair[index];
  Witness& witness = witnesses_[static_cast<size_t>(index)];
  if (witness.touching) return false;
  if (witness.wait > 0) {
    --witness.wait;
    return false;
  }
  // the second geom's frame in the first's
  const double between[3] = {pos2[0] - pos1[0], pos2[1] - pos1[1], pos2[2] - pos1[2]};
  double offset[3], mat[9], x[3];
  TurnBack(offset, mat1, between);
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) {
      mat[3 * i + k] = mat1[i] * mat2[k] + mat1[3 + i] * mat2[3 + k] + mat1[6 + i] * mat2[6 + k];
    }
  }
  const double normal[3] = {0, 0, 1};
  // under a negative margin MuJoCo's functions find overlaps all the same
  const double gap = std::max(pair.apart, pair.apart - pair.reach);
  const bool has_axis = Dot(witness.axis, witness.axis) > 0;
  std::copy_n(pair.plane ? normal : has_axis ? witness.axis : offset, 3, x);
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    const double length = std::sqrt(Dot(x, x));
    if (!(length > mjMINVAL)) return false;
    double axis[3], opposite[3], back[3], point1[3], point2[3], turned[3], farthest[3];
    for (int i = 0; i < 3; ++i) {
      axis[i] = x[i] / length;
      opposite[i] = -axis[i];
    }
    TurnBack(back, mat, opposite);
    Support(pair.geom1, axis, witness.vertex[0], point1);
    Support(pair.geom2, back, witness.vertex[1], point2);
    Turn(turned, mat, point2);
    for (int i = 0; i < 3; ++i) farthest[i] = turned[i] + offset[i] - point1[i];
    if (Dot(farthest, axis) > gap) {
      std::copy_n(axis, 3, witness.axis);
      witness.wait = witness.patience = 0;
      return true;
    }
    if (iteration == 0) {
      if (pair.plane) return false;
      std::copy_n(farthest, 3, x);
    } else {
      double towards[3];
      for (int i = 0; i < 3; ++i) towards[i] = farthest[i] - x[i];
      const double share = std::clamp(-Dot(x, towards) / Dot(towards, towards), 0.0, 1.0);
      for (int i = 0; i < 3; ++i) x[i] += share * towards[i];
    }
    if (Dot(x, x) <= gap * gap) break;
  }
  witness.wait = witness.patience = std::min(2 * witness.patience + 1, kMaxPatience);
  return false;
}

}  // namespace pyfastenv::lanes
