#include "mujoco/model_image.h"

#include <mujoco/mjxmacro.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

#include "mujoco/version.h"

#if PYFASTENV_MUJOCO < 3005000
#define MJMODEL_SIZES MJMODEL_INTS
#endif

namespace pyfastenv {

namespace {

// Or seen by rays, which are sensors. Of meshes, collisions ask for vertices, the graph and the
// polygons that they make.
constexpr bool IsOnlyDrawn(std::string_view array) {
  for (const std::string_view group :
       {"tex_", "mat_", "skin_", "mesh_face", "mesh_normal", "mesh_texcoord"}) {
    if (array.starts_with(group)) return true;
  }
  return false;
}

// Of the trees of bounding volumes, those of bodies come before those of meshes, which may be
// megabytes and are for rays.
int64_t CountBodyVolumes(const mjModel& m) {
  int64_t end = 0;
  for (int b = 0; b < m.nbody; ++b) {
    if (m.body_bvhnum[b] > 0) {
      end = std::max(end, int64_t{m.body_bvhadr[b]} + int64_t{m.body_bvhnum[b]});
    }
  }
  return end;
}

template <class Count>
int64_t CountRead(const mjModel& m, std::string_view array, Count rows) {
  return array.starts_with("bvh_") ? std::min<int64_t>(rows, CountBodyVolumes(m)) : int64_t{rows};
}

// Calls visit(address, bytes) for the sizes first, then all else; stops when it returns false.
template <class Visit>
bool VisitAll(const mjModel* m, Visit visit) {
#define X(name) \
  if (!visit(&m->name, sizeof(m->name))) return false;
  MJMODEL_SIZES
#undef X
  if (!visit(&m->opt, sizeof(m->opt)) || !visit(&m->stat, sizeof(m->stat))) return false;
#undef MJ_M
#define MJ_M(n) m->n
#define X(type, name, rows, columns)                                        \
  if constexpr (!IsOnlyDrawn(#name)) {                                      \
    const size_t size = sizeof(type) * static_cast<size_t>(columns) *       \
                        static_cast<size_t>(CountRead(*m, #name, m->rows)); \
    if (size > 0 && !visit(m->name, size)) return false;                    \
  }
  MJMODEL_POINTERS
#undef X
#undef MJ_M
#define MJ_M(n) n
  return true;
}

}  // namespace

ModelImage::ModelImage(const mjModel& model) {
  size_t total = 0;
  VisitAll(&model, [&](const void*, size_t size) {
    total += size;
    return true;
  });
  bytes_.resize(total);
  std::byte* to = bytes_.data();
  VisitAll(&model, [&](const void* from, size_t size) {
    std::memcpy(to, from, size);
    to += size;
    return true;
  });
}

bool ModelImage::Matches(const mjModel& model) const {
  // sizes come first: once they are equal, so is the length of all that follows, but for volumes
  const std::byte* mine = bytes_.data();
  const std::byte* const end = mine + bytes_.size();
  return VisitAll(&model, [&](const void* theirs, size_t size) {
    const bool same =
        size <= static_cast<size_t>(end - mine) && std::memcmp(mine, theirs, size) == 0;
    mine += size;
    return same;
  });
}

size_t ModelImage::Hash() const {
  const auto* text = reinterpret_cast<const char*>(bytes_.data());
  return std::hash<std::string_view>()(std::string_view(text, bytes_.size()));
}

bool DataFits(const mjModel& model, const mjModel& made_for) {
  if (&model == &made_for) return true;
  const mjModel *a = &model, *b = &made_for;
  if (a->nplugin != b->nplugin) return false;
#define X(type, name, rows, columns) \
  if (a->rows > b->rows) return false;
  MJDATA_POINTERS
#undef X
  return true;
}

}  // namespace pyfastenv
