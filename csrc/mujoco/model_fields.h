// The real-valued array fields of mjModel, by name, for per-environment physics.
#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace pyfastenv {

struct ModelField {
  std::string name;
  std::vector<int> shape;       // (n,) or (n, columns)
  mjtNum* mjModel::* array;     // null for a vector inside mjOption
  mjtNum* (*option)(mjModel*);  // null for an array

  int size() const {
    int size = 1;
    for (const int n : shape) size *= n;
    return size;
  }
};

/// A field of which every environment has its own values, and where they stand.
struct FieldPlace {
  std::string name;
  int offset = 0;
};

/// Finds e.g. "body_mass", "geom_friction", "actuator_gainprm", "opt.gravity".
/// Throws std::invalid_argument, naming similar fields, if there is none of this name.
ModelField FindModelField(const mjModel& model, const std::string& name);

/// Arrays of 32-bit numbers, of which environments of own tasks may have their own:
/// "hfield_data" (floats) and "geom_type" (ints).
bool IsNarrowField(const std::string& name);
std::span<const std::byte> NarrowField(const mjModel& model, const std::string& name);
/// How many doubles such an array takes in a row.
int SizeInRow(std::span<const std::byte> narrow);
/// Points a model at such an array of the caller's.
void PointNarrowField(mjModel* model, const std::string& name, void* values);

}  // namespace pyfastenv
