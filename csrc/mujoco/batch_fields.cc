#include "mujoco/batch_fields.h"

#include <mujoco/mjxmacro.h>

#include "mujoco/version.h"

namespace pyfastenv {

namespace {

// Bodies' trees of bounding volumes come before those of meshes.
size_t CountBodyVolumes(const mjModel& m) {
  return static_cast<size_t>(m.nmesh > 0 ? m.mesh_bvhadr[0] : m.nbvhstatic);
}

}  // namespace

std::optional<DataField> FindDataField(const mjModel& model, std::string_view name) {
  const mjModel* m = &model;
  // MuJoCo's own tables; sizes are members of the model
#undef XNV
#define XNV X
#undef MJ_M
#define MJ_M(n) m->n
#define X(type, field, rows, columns)                                                             \
  if (name == #field) {                                                                           \
    return DataField{[](const mjData& d) -> const void* { return d.field; },                      \
                     sizeof(type) * static_cast<size_t>(m->rows) * static_cast<size_t>(columns)}; \
  }
  MJDATA_POINTERS
#undef X
#undef MJ_M
#define MJ_M(n) n
#define X(type, field)                                                                       \
  if (name == #field) {                                                                      \
    return DataField{[](const mjData& d) -> const void* { return &d.field; }, sizeof(type)}; \
  }
  MJDATA_SCALAR
#undef X
#define X(type, field, rows, columns)                                                          \
  if (name == #field) {                                                                        \
    return DataField{[](const mjData& d) -> const void* { return d.field; },                   \
                     sizeof(type) * static_cast<size_t>(rows) * static_cast<size_t>(columns)}; \
  }
  MJDATA_VECTOR
#undef X
  return {};
}

std::optional<OwnField> FindOwnField(const mjModel& model, std::string_view name) {
  const mjModel* m = &model;
  if (name == "bvh_aabb") {
    return OwnField{[](mjModel& x) { return reinterpret_cast<void**>(&x.bvh_aabb); }, nullptr,
                    6 * sizeof(mjtNum) * CountBodyVolumes(model)};
  }
  MJMODEL_POINTERS_PREAMBLE(m)
#undef MJ_M
#define MJ_M(n) m->n
#define X(type, field, rows, columns)                                                            \
  if (name == #field) {                                                                          \
    return OwnField{[](mjModel& x) { return reinterpret_cast<void**>(&x.field); }, nullptr,      \
                    sizeof(type) * static_cast<size_t>(m->rows) * static_cast<size_t>(columns)}; \
  }
  MJMODEL_POINTERS;
#undef X
#undef MJ_M
#define MJ_M(n) n
  (void)(nv + na + nq + nu + nmocap);
#if PYFASTENV_MUJOCO >= 4000000
  (void)nplastic;
#endif
#define PYFASTENV_OPTION(field)                                                \
  if (name == "opt." #field) {                                                 \
    return OwnField{nullptr, [](mjModel& x) -> void* { return &x.opt.field; }, \
                    sizeof(model.opt.field)};                                  \
  }
#ifdef MJOPTION_FIELDS
#define X(type, field, size) PYFASTENV_OPTION(field)
#define XVEC(type, field, size) PYFASTENV_OPTION(field)
  MJOPTION_FIELDS
#undef XVEC
#undef X
#else
  PYFASTENV_OPTION(timestep)
  PYFASTENV_OPTION(gravity)
  PYFASTENV_OPTION(wind)
  PYFASTENV_OPTION(density)
  PYFASTENV_OPTION(viscosity)
#endif
#undef PYFASTENV_OPTION
#ifdef MJSETCONST_SCALARS
#define X(field)                                                                                 \
  if (name == #field) {                                                                          \
    return OwnField{nullptr, [](mjModel& x) -> void* { return &x.field; }, sizeof(model.field)}; \
  }
  MJSETCONST_SCALARS
#undef X
#endif
  return {};
}

}  // namespace pyfastenv
