#include "render/mesh.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace pyfastenv::render {

namespace {

constexpr float kSharp = 0.8F;         // cosine between a face and a corner's normal
constexpr float kFinest = 1.0F / 512;  // of a mesh's size, the finest grid that merges its corners
constexpr size_t kFew = 300;           // triangles that need no coarser copy
constexpr size_t kFewest = 60;

Float3 At(const float* values, int i) {
  return {values[3 * i], values[3 * i + 1], values[3 * i + 2]};
}

Float3 FaceNormal(const Triangle& t) { return Cross(t.at[1] - t.at[0], t.at[2] - t.at[0]); }

/// Adds a triangle with its face's normal.
void AddFlat(std::vector<Triangle>& out, Float3 a, Float3 b, Float3 c) {
  Triangle t{{a, b, c}, {}, {}};
  const Float3 normal = Unit(FaceNormal(t));
  for (Float3& n : t.normal) n = normal;
  out.push_back(t);
}

void AddQuad(std::vector<Triangle>& out, Float3 a, Float3 b, Float3 c, Float3 d) {
  AddFlat(out, a, b, c);
  AddFlat(out, a, c, d);
}

void Grow(Float3& low, Float3& high, Float3 p) {
  low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
  high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
}

/// Whether an edge belongs to an odd number of triangles.
bool IsOpen(const std::vector<Triangle>& triangles) {
  std::map<std::array<float, 3>, uint32_t> corners;
  std::unordered_set<uint64_t> odd;
  for (const Triangle& t : triangles) {
    uint64_t index[3];
    for (int k = 0; k < 3; ++k) {
      const std::array<float, 3> at = {t.at[k].x, t.at[k].y, t.at[k].z};
      index[k] = corners.emplace(at, static_cast<uint32_t>(corners.size())).first->second;
    }
    for (int k = 0; k < 3; ++k) {
      const auto [low, high] = std::minmax(index[k], index[(k + 1) % 3]);
      const uint64_t edge = low << 32U | high;
      if (!odd.insert(edge).second) odd.erase(edge);
    }
  }
  return !odd.empty();
}

/// Corners that fall into one cell of a grid.
struct Merged {
  Float3 at{}, normal{};
  float uv[2] = {0, 0};
  int count = 0;
};

uint64_t CellOf(Float3 p, float cell) {
  const auto index = [&](float v) {
    return static_cast<uint64_t>(static_cast<int64_t>(std::floor(v / cell))) & 0x1fffffU;
  };
  return index(p.x) << 42U | index(p.y) << 21U | index(p.z);
}

}  // namespace

std::vector<Triangle> ReadMesh(const mjModel& m, int mesh, bool is_hull) {
  const float* vertices = m.mesh_vert + 3 * static_cast<ptrdiff_t>(m.mesh_vertadr[mesh]);
  std::vector<Triangle> out;
  if (is_hull) {
    if (m.mesh_graphadr[mesh] < 0) return out;
    const int* graph = m.mesh_graph + m.mesh_graphadr[mesh];
    const int* faces = graph + 2 + 3 * graph[0] + 3 * graph[1];
    for (int f = 0; f < graph[1]; ++f, faces += 3) {
      AddFlat(out, At(vertices, faces[0]), At(vertices, faces[1]), At(vertices, faces[2]));
    }
    return out;
  }
  const float* normals = m.mesh_normal + 3 * static_cast<ptrdiff_t>(m.mesh_normaladr[mesh]);
  const bool has_uv = m.mesh_texcoordadr[mesh] >= 0;
  const int first = m.mesh_faceadr[mesh];
  for (int f = first; f < first + m.mesh_facenum[mesh]; ++f) {
    Triangle t;
    for (int k = 0; k < 3; ++k) {
      t.at[k] = At(vertices, m.mesh_face[3 * f + k]);
      t.normal[k] = At(normals, m.mesh_facenormal[3 * f + k]);
      if (!has_uv) continue;
      const float* uv =
          m.mesh_texcoord + 2 * (m.mesh_texcoordadr[mesh] + m.mesh_facetexcoord[3 * f + k]);
      t.uv[k][0] = uv[0], t.uv[k][1] = uv[1];
    }
    const Float3 face = Unit(FaceNormal(t));
    if (Length(face) == 0) continue;
    for (Float3& n : t.normal) {
      if (!has_uv && Dot(n, face) < kSharp) n = face;
    }
    out.push_back(t);
  }
  return out;
}

std::vector<Triangle> ReadHeightField(const mjModel& m, int hfield) {
  const int rows = m.hfield_nrow[hfield], columns = m.hfield_ncol[hfield];
  const float* heights = m.hfield_data + m.hfield_adr[hfield];
  const mjtNum* size = m.hfield_size + 4 * static_cast<ptrdiff_t>(hfield);
  const auto sx = static_cast<float>(size[0]), sy = static_cast<float>(size[1]);
  const auto top = static_cast<float>(size[2]), bottom = -static_cast<float>(size[3]);
  const auto along = [](int i, int count, float s) {
    return s * (2 * static_cast<float>(i) / static_cast<float>(count - 1) - 1);
  };
  const auto point = [&](int r, int c) {
    return Float3{along(c, columns, sx), along(r, rows, sy),
                  heights[static_cast<ptrdiff_t>(r) * columns + c] * top};
  };
  const auto foot = [&](Float3 p) { return Float3{p.x, p.y, bottom}; };
  std::vector<Triangle> out;
  for (int r = 0; r + 1 < rows; ++r) {
    for (int c = 0; c + 1 < columns; ++c) {
      AddFlat(out, point(r + 1, c), point(r, c), point(r + 1, c + 1));
      AddFlat(out, point(r, c), point(r, c + 1), point(r + 1, c + 1));
    }
  }
  for (int r = 0; r + 1 < rows; ++r) {
    const Float3 a = point(r, 0), b = point(r + 1, 0);
    AddQuad(out, foot(b), foot(a), a, b);
    const Float3 c = point(r, columns - 1), d = point(r + 1, columns - 1);
    AddQuad(out, foot(c), foot(d), d, c);
  }
  for (int c = 0; c + 1 < columns; ++c) {
    const Float3 a = point(0, c), b = point(0, c + 1);
    AddQuad(out, foot(a), foot(b), b, a);
    const Float3 e = point(rows - 1, c), d = point(rows - 1, c + 1);
    AddQuad(out, foot(d), foot(e), e, d);
  }
  AddQuad(out, {-sx, -sy, bottom}, {-sx, sy, bottom}, {sx, sy, bottom}, {sx, -sy, bottom});
  return out;
}

std::vector<Triangle> Simplify(const std::vector<Triangle>& triangles, float cell) {
  std::vector<Merged> corners;
  std::unordered_map<uint64_t, int> of_cell;
  std::vector<std::array<int, 3>> faces;
  faces.reserve(triangles.size());
  for (const Triangle& t : triangles) {
    const Float3 face = FaceNormal(t);  // as long as the triangle is large
    const float area = Length(face);
    std::array<int, 3> f{};
    for (int k = 0; k < 3; ++k) {
      const auto found = of_cell.emplace(CellOf(t.at[k], cell), static_cast<int>(corners.size()));
      f[k] = found.first->second;
      if (found.second) corners.emplace_back();
      Merged& c = corners[f[k]];
      c.at = c.at + t.at[k], c.normal = c.normal + t.normal[k] * area, ++c.count;
      for (int a = 0; a < 2; ++a) c.uv[a] += t.uv[k][a];
    }
    faces.push_back(f);
  }
  std::unordered_set<uint64_t> seen;
  std::vector<Triangle> out;
  for (std::array<int, 3>& f : faces) {
    if (f[0] == f[1] || f[1] == f[2] || f[2] == f[0]) continue;
    std::rotate(f.begin(), std::min_element(f.begin(), f.end()), f.end());
    const auto bits = [&](int k) { return static_cast<uint64_t>(f[k]) & 0x1fffffU; };
    if (!seen.insert(bits(0) << 42U | bits(1) << 21U | bits(2)).second) continue;
    Triangle t;
    for (int k = 0; k < 3; ++k) {
      const Merged& c = corners[f[k]];
      const float share = 1 / static_cast<float>(c.count);
      t.at[k] = c.at * share, t.normal[k] = Unit(c.normal);
      for (int a = 0; a < 2; ++a) t.uv[k][a] = c.uv[a] * share;
    }
    const Float3 face = Unit(FaceNormal(t));
    if (Length(face) == 0) continue;
    for (Float3& n : t.normal) {
      if (Dot(n, face) < 0.5F) n = face;
    }
    out.push_back(t);
  }
  return out;
}

Mesh::Mesh(std::vector<Triangle> triangles) {
  if (triangles.empty()) triangles.emplace_back();  // nothing to be seen
  low_ = high_ = triangles[0].at[0];
  for (const Triangle& t : triangles) {
    for (const Float3& p : t.at) Grow(low_, high_, p);
  }
  is_open_ = IsOpen(triangles);
  Add(triangles, 0);
  float cell = Length(high_ - low_) * kFinest;
  size_t last = triangles.size();
  while (triangles.size() > kFew && cell < Length(high_ - low_)) {
    std::vector<Triangle> coarser = Simplify(triangles, cell);
    if (coarser.size() < kFewest) break;
    if (static_cast<double>(coarser.size()) <= 0.7 * static_cast<double>(last)) {
      Add(coarser, cell);
      last = coarser.size();
    }
    cell *= 1.4142136F;
  }
}

void Mesh::Add(const std::vector<Triangle>& triangles, float cell) {
  const size_t groups = (triangles.size() + kLanes - 1) / kLanes;
  constexpr size_t kRows = 9 + 9 + 6;
  std::vector<Line>& lines = storage_.emplace_back(groups * kRows, Line{});
  Line *corners = lines.data(), *normals = corners + groups * 9, *uvs = normals + groups * 9;
  for (size_t i = 0; i < triangles.size(); ++i) {
    const size_t group = i / kLanes, lane = i % kLanes;
    const Triangle& t = triangles[i];
    for (size_t k = 0; k < 3; ++k) {
      const auto put = [&](Line* to, Float3 v) {
        to[group * 9 + 3 * k].value[lane] = v.x;
        to[group * 9 + 3 * k + 1].value[lane] = v.y;
        to[group * 9 + 3 * k + 2].value[lane] = v.z;
      };
      put(corners, t.at[k]), put(normals, t.normal[k]);
      uvs[group * 6 + 2 * k].value[lane] = t.uv[k][0];
      uvs[group * 6 + 2 * k + 1].value[lane] = t.uv[k][1];
    }
  }
  levels_.push_back({static_cast<int>(groups), corners->value, normals->value, uvs->value, cell});
}

}  // namespace pyfastenv::render
