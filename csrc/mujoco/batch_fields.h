// All fields of mjData and mjModel that a batch of simulations may have an array of, by name: where
// they are, and how large.
//
// Which of them make sense for a caller is not decided here. No field's type is known here either:
// they are bytes.
#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace pyfastenv {

/// A field of mjData whose size does not change from step to step.
struct DataField {
  const void* (*find)(const mjData&);
  size_t bytes;
};

/// An array ("xpos"), a vector ("energy") or a count ("ncon"); nothing for other names.
std::optional<DataField> FindDataField(const mjModel& model, std::string_view name);

/// A field of mjModel that simulations may have their own values of.
struct OwnField {
  void** (*array)(mjModel&);  // the pointer to it; null: `value`
  void* (*value)(mjModel&);   // where the model itself holds it (options, some counts)
  size_t bytes;               // of one simulation's values
};

/// An array ("body_mass"), an option ("opt.gravity") or a number that mj_setConst derives
/// ("ngravcomp"); nothing for other names. Of "bvh_aabb" the volumes of bodies, which come first.
std::optional<OwnField> FindOwnField(const mjModel& model, std::string_view name);

}  // namespace pyfastenv
