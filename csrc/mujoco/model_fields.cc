#include "mujoco/model_fields.h"

#include <mujoco/mjxmacro.h>

#include <stdexcept>
#include <type_traits>

#include "mujoco/version.h"

namespace pyfastenv {

namespace {

std::vector<int> Shape(int rows, int columns) {
  return columns == 1 ? std::vector<int>{rows} : std::vector<int>{rows, columns};
}

std::vector<ModelField> AllModelFields(const mjModel& model) {
  const mjModel* m = &model;
  std::vector<ModelField> fields;
  // MuJoCo's own table of mjModel's arrays; sizes are members of m, some columns are locals
  MJMODEL_POINTERS_PREAMBLE(m)
#undef MJ_M
#define MJ_M(n) m->n
#define X(type, field, rows, columns)                                                      \
  if constexpr (std::is_same_v<type, mjtNum>) {                                            \
    fields.push_back({#field, Shape(static_cast<int>(m->rows), static_cast<int>(columns)), \
                      reinterpret_cast<mjtNum * mjModel::*>(&mjModel::field), nullptr});   \
  }
#undef XNV
#define XNV X
  MJMODEL_POINTERS
#undef X
#undef XNV
#define XNV X
#undef MJ_M
#define MJ_M(n) n
      (void)
  nv, (void)na, (void)nq, (void)nu, (void)nmocap;
#if PYFASTENV_MUJOCO >= 4000000
  (void)nplastic;
#endif
  fields.push_back({"opt.gravity", {3}, nullptr, [](mjModel* x) { return x->opt.gravity; }});
  fields.push_back({"opt.wind", {3}, nullptr, [](mjModel* x) { return x->opt.wind; }});
  fields.push_back({"opt.density", {1}, nullptr, [](mjModel* x) { return &x->opt.density; }});
  fields.push_back({"opt.viscosity", {1}, nullptr, [](mjModel* x) { return &x->opt.viscosity; }});
  return fields;
}

}  // namespace

ModelField FindModelField(const mjModel& model, const std::string& name) {
  const std::string prefix = name.substr(0, name.find_first_of("_."));
  std::string similar;
  for (auto& field : AllModelFields(model)) {
    if (field.name == name) {
      if (field.size() == 0) {
        throw std::invalid_argument("model field '" + name + "' is empty in this model");
      }
      return field;
    }
    if (field.size() > 0 && field.name.substr(0, field.name.find_first_of("_.")) == prefix) {
      similar += (similar.empty() ? "" : ", ") + field.name;
    }
  }
  throw std::invalid_argument("'" + name + "' is not a real-valued array field of mjModel" +
                              (similar.empty() ? std::string() : "; similar ones: " + similar));
}

bool IsNarrowField(const std::string& name) { return name == "hfield_data" || name == "geom_type"; }

std::span<const std::byte> NarrowField(const mjModel& model, const std::string& name) {
  if (name == "geom_type") {
    return std::as_bytes(std::span(model.geom_type, static_cast<size_t>(model.ngeom)));
  }
  return std::as_bytes(std::span(model.hfield_data, static_cast<size_t>(model.nhfielddata)));
}

int SizeInRow(std::span<const std::byte> narrow) {
  return static_cast<int>((narrow.size() + sizeof(double) - 1) / sizeof(double));
}

void PointNarrowField(mjModel* model, const std::string& name, void* values) {
  if (name == "geom_type") {
    model->geom_type = static_cast<int*>(values);
  } else {
    model->hfield_data = static_cast<float*>(values);
  }
}

}  // namespace pyfastenv
