#include "mujoco/model_image.h"

#include <mujoco/mjxmacro.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "lanes/number_access.h"
#include "lanes/rays.h"
#include "mujoco/error_trap.h"
#include "mujoco/version.h"

#if PYFASTENV_MUJOCO < 3005000
#define MJMODEL_SIZES MJMODEL_INTS
#endif

namespace pyfastenv {

namespace {

// Neither read by a step of a model that lanes take nor by their plans: what is drawn, seen by
// cameras (which are sensors, and read the model at hand), named, in texts and keyframes, or of
// what sleeps. Of colours, rays see who is visible.
constexpr bool MayBeRead(std::string_view array) {
  for (const std::string_view group :
       {"tex_",        "mat_",          "skin_",    "light_",    "key_",       "text_",
        "tuple_",      "numeric_",      "oct_",     "cam_",      "dof_length", "mesh_face",
        "mesh_normal", "mesh_texcoord", "mesh_pos", "mesh_quat", "mesh_scale", "mesh_bvh",
        "mesh_oct",    "mesh_path",     "name",     "paths"}) {
    if (array.starts_with(group)) return false;
  }
  return !(array.ends_with("_user") || array.ends_with("_rgba") || array.ends_with("_matid") ||
           (array.ends_with("_group") && array != "actuator_group"));
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

// Which meshes belong to geoms that may touch something: of the others, megabytes mostly, physics
// reads nothing.
class TouchingMeshes {
 public:
  explicit TouchingMeshes(const mjModel& m) : touching_(static_cast<size_t>(m.nmesh)) {
    if (m.nmesh == 0) return;
    for (int g = 0; g < m.ngeom; ++g) {
      if (m.geom_contype[g] != 0 || m.geom_conaffinity[g] != 0) Add(m, g);
    }
    for (int k = 0; k < m.npair; ++k) {
      Add(m, m.pair_geom1[k]);
      Add(m, m.pair_geom2[k]);
    }
  }

  bool any() const { return any_; }
  bool operator[](int mesh) const { return touching_[static_cast<size_t>(mesh)]; }

 private:
  void Add(const mjModel& m, int geom) {
    const int mesh = m.geom_type[geom] == mjGEOM_MESH ? m.geom_dataid[geom] : -1;
    if (mesh < 0 || mesh >= m.nmesh) return;
    touching_[static_cast<size_t>(mesh)] = any_ = true;
  }

  std::vector<bool> touching_;
  bool any_ = false;
};

// Whether rows of constraints are made of tendons' lengths and inverse weights.
bool ConstrainsTendons(const mjModel& m) {
  return std::any_of(m.tendon_limited, m.tendon_limited + m.ntendon, [](mjtBool x) { return x; }) ||
         std::any_of(m.tendon_frictionloss, m.tendon_frictionloss + m.ntendon,
                     [](mjtNum x) { return x != 0; }) ||
         std::any_of(m.eq_type, m.eq_type + m.neq, [](int x) { return x == mjEQ_TENDON; });
}

// In which MuJoCo descends into bodies' trees of bounding volumes.
bool HasMiddlePhase(const mjModel& m) { return (m.opt.disableflags & mjDSBL_MIDPHASE) == 0; }

// Whether a medium acts on geoms. Where it does in one model alone, arrays have other lengths,
// which tells them apart.
bool HasMedium(const mjModel& m) { return m.opt.density != 0 || m.opt.viscosity != 0; }

bool HasRangeFinders(const mjModel& m) {
  return std::find(m.sensor_type, m.sensor_type + m.nsensor, mjSENS_RANGEFINDER) !=
         m.sensor_type + m.nsensor;
}

bool HasMuscles(const mjModel& m) {
  return std::any_of(m.actuator_gaintype, m.actuator_gaintype + m.nu,
                     [](int x) { return x == mjGAIN_MUSCLE; }) ||
         std::any_of(m.actuator_biastype, m.actuator_biastype + m.nu,
                     [](int x) { return x == mjBIAS_MUSCLE; });
}

// Of which arrays a step reads more or less, as the rest of the model has it. At hand: lanes read
// it of the model itself, not of their plan's copy (lanes/narrow_phase.h).
enum class Use {
  kNever,
  kAtHand,
  kAlways,
  kByMuscles,
  kByMedium,
  kOfBodies,
  kByTendons,
  kOfMeshes,
  kOfVertices
};

constexpr Use UseOf(std::string_view array, std::string_view rows) {
  if (!MayBeRead(array)) return Use::kNever;
  if (array == "actuator_acc0") return Use::kByMuscles;
  if (array == "geom_fluid") return Use::kByMedium;
  if (array.starts_with("bvh_")) return Use::kOfBodies;
  if (array == "tendon_invweight0" || array == "tendon_length0") return Use::kByTendons;
  if (!array.starts_with("mesh_")) return Use::kAlways;
  if (array == "mesh_graph" || array == "mesh_extrema" || array.starts_with("mesh_poly")) {
    return Use::kAtHand;
  }
  return rows == "nmeshvert" ? Use::kOfVertices : Use::kOfMeshes;
}

// Calls visit(name, address, bytes) for the parts that are read of an array of so many rows.
template <Use use, class Visit>
bool VisitArray(const mjModel& m, const TouchingMeshes& meshes, std::string_view name,
                const void* array, int64_t rows, size_t row_bytes, Visit visit) {
  const auto part = [&](int64_t first, int64_t count) {
    const auto* begin =
        static_cast<const std::byte*>(array) + static_cast<size_t>(first) * row_bytes;
    return count <= 0 || visit(name, begin, static_cast<size_t>(count) * row_bytes);
  };
  if constexpr (use == Use::kOfVertices) {
    for (int i = 0; i < m.nmesh; ++i) {
      if (meshes[i] && !part(m.mesh_vertadr[i], m.mesh_vertnum[i])) return false;
    }
    return true;
  }
  if constexpr (use == Use::kByMuscles) rows = HasMuscles(m) ? rows : 0;
  if constexpr (use == Use::kByMedium) rows = HasMedium(m) ? rows : 0;
  if constexpr (use == Use::kOfBodies) {
    rows = HasMiddlePhase(m) ? std::min(rows, CountBodyVolumes(m)) : 0;
  }
  if constexpr (use == Use::kByTendons) rows = ConstrainsTendons(m) ? rows : 0;
  if constexpr (use == Use::kOfMeshes) rows = meshes.any() ? rows : 0;
  return part(0, rows);
}

// Calls visit(name, address, bytes) for the sizes first, then all else that is read; stops when it
// returns false.
template <class Visit>
bool VisitAll(const mjModel* m, Visit visit) {
#define X(name) \
  if (!visit(#name, &m->name, sizeof(m->name))) return false;
  MJMODEL_SIZES
#undef X
  if (!visit("opt", &m->opt, sizeof(m->opt))) return false;
  if (HasRangeFinders(*m)) {
    std::vector<unsigned char> visible;
    for (int g = 0; g < m->ngeom; ++g) visible.push_back(lanes::IsVisible(*m, g));
    if (!visit("geom_rgba", visible.data(), visible.size())) return false;
  }
  const TouchingMeshes meshes(*m);
#undef MJ_M
#define MJ_M(n) m->n
#define X(type, name, rows, columns)                                               \
  if constexpr (constexpr Use use = UseOf(#name, #rows); use > Use::kAtHand) {     \
    const size_t row_bytes = sizeof(type) * static_cast<size_t>(columns);          \
    if (!VisitArray<use>(*m, meshes, #name, m->name, m->rows, row_bytes, visit)) { \
      return false;                                                                \
    }                                                                              \
  }
  MJMODEL_POINTERS
#undef X
#undef MJ_M
#define MJ_M(n) n
  return true;
}

// The bit of a field that environments may have their own of; 0 for others.
uint64_t BitOf(std::string_view field) {
  const lanes::Number number = lanes::FindNumber(std::string(field));
  return number == lanes::Number::kCount ? 0 : uint64_t{1} << static_cast<int>(number);
}

// The bits of the options of those in which two differ; 0 if they differ in others too.
uint64_t DifferingOptions(const void* mine, const void* theirs) {
  mjOption a, b;
  std::memcpy(&a, mine, sizeof(a));
  std::memcpy(&b, theirs, sizeof(b));
  uint64_t numbers = 0;
  const auto compare = [&](const char* field, auto& x, auto& y) {
    if (std::memcmp(&x, &y, sizeof(x)) != 0) numbers |= BitOf(field);
    std::memcpy(&x, &y, sizeof(x));
  };
  compare("opt.gravity", a.gravity, b.gravity);
  compare("opt.wind", a.wind, b.wind);
  compare("opt.density", a.density, b.density);
  compare("opt.viscosity", a.viscosity, b.viscosity);
  return std::memcmp(&a, &b, sizeof(a)) == 0 ? numbers : 0;
}

}  // namespace

ModelImage::ModelImage(const mjModel& model) {
  size_t total = 0;
  VisitAll(&model, [&](std::string_view, const void*, size_t size) {
    total += size;
    return true;
  });
  bytes_.resize(total);
  std::byte* to = bytes_.data();
  VisitAll(&model, [&](std::string_view, const void* from, size_t size) {
    std::memcpy(to, from, size);
    to += size;
    return true;
  });
}

std::optional<uint64_t> ModelImage::Differences(const mjModel& model) const {
  // sizes come first: once they are equal, so is the length of all that follows, but for volumes,
  // meshes and mediums
  const std::byte* mine = bytes_.data();
  const std::byte* const end = mine + bytes_.size();
  uint64_t numbers = 0;
  const bool alike = VisitAll(&model, [&](std::string_view name, const void* theirs, size_t size) {
    if (size > static_cast<size_t>(end - mine)) return false;
    if (std::memcmp(mine, theirs, size) != 0) {
      const uint64_t which = name == "opt" ? DifferingOptions(mine, theirs) : BitOf(name);
      if (which == 0) return false;
      numbers |= which;
    }
    mine += size;
    return true;
  });
  if (!alike || mine != end) return {};
  return numbers;
}

size_t ModelImage::Hash() const {
  const auto* text = reinterpret_cast<const char*>(bytes_.data());
  return std::hash<std::string_view>()(std::string_view(text, bytes_.size()));
}

std::string SavedModel(const mjModel& model) {
  std::string bytes(static_cast<size_t>(mj_sizeModel(&model)), '\0');
  Trapped([&] { mj_saveModel(&model, nullptr, bytes.data(), static_cast<int>(bytes.size())); });
  return bytes;
}

bool IsRead(const mjModel& model, std::string_view array) {
  const Use use = UseOf(array, "");
  if (use == Use::kByMuscles) return HasMuscles(model);
  if (array == "geom_rgba" || array == "geom_matid" || array == "mat_rgba") {
    return HasRangeFinders(model);
  }
  if (use == Use::kOfBodies) return HasMiddlePhase(model);
  return use != Use::kNever;
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

bool SameSizes(const mjModel& a, const mjModel& b) {
  return DataFits(a, b) && DataFits(b, a) &&
         mj_stateSize(&a, mjSTATE_INTEGRATION) == mj_stateSize(&b, mjSTATE_INTEGRATION);
}

}  // namespace pyfastenv
