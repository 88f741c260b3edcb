// Triangles of meshes, convex hulls and height fields, as kernels draw them; and coarser copies for
// pictures in which they are small.
#pragma once

#include <mujoco/mujoco.h>

#include <vector>

#include "render/frame.h"

namespace pyfastenv::render {

struct Triangle {
  Float3 at[3], normal[3];
  float uv[3][2] = {};
};

/// A mesh's triangles as MuJoCo draws them: an edge of more than 37 degrees stays sharp, unless the
/// mesh has texture coordinates. `is_hull`: its convex hull's instead.
std::vector<Triangle> ReadMesh(const mjModel& model, int mesh, bool is_hull);
/// A height field's surface, sides and bottom.
std::vector<Triangle> ReadHeightField(const mjModel& model, int hfield);

/// The triangles with their corners moved to the middle of those in one cell of a grid.
std::vector<Triangle> Simplify(const std::vector<Triangle>& triangles, float cell);

/// A mesh ready to be drawn. Immutable; not copyable, since `levels` point into it.
class Mesh {
 public:
  /// With coarser copies, from the finest on, each of at most 0.7 times as many triangles.
  explicit Mesh(std::vector<Triangle> triangles);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  const std::vector<Triangles>& levels() const { return levels_; }
  Float3 low() const { return low_; }
  Float3 high() const { return high_; }
  /// Whether an edge belongs to one triangle alone, by its corners' places.
  bool is_open() const { return is_open_; }

 private:
  struct alignas(64) Line {
    float value[kLanes];
  };

  void Add(const std::vector<Triangle>& triangles, float cell);

  std::vector<std::vector<Line>> storage_;
  std::vector<Triangles> levels_;
  Float3 low_{}, high_{};
  bool is_open_ = false;
};

}  // namespace pyfastenv::render
