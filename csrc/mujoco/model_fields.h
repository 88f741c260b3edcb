// The real-valued array fields of mjModel, by name, for per-environment physics.
#pragma once

#include <mujoco/mujoco.h>

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

}  // namespace pyfastenv
