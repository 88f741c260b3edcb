// MuJoCo's structs that delete themselves. Where there is no memory for one the engine raises an
// error, which would end the process.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>

#include "mujoco/error_trap.h"

namespace pyfastenv {

struct DeleteData {
  void operator()(mjData* data) const { mj_deleteData(data); }
};

using DataPointer = std::unique_ptr<mjData, DeleteData>;

/// Throws MujocoError.
inline DataPointer MakeData(const mjModel& model) {
  mjData* data = nullptr;
  Trapped([&] { data = mj_makeData(&model); });
  if (data == nullptr) throw MujocoError("MuJoCo could not allocate mjData");
  return DataPointer(data);
}

/// Throws MujocoError.
inline std::shared_ptr<const mjModel> CopyModel(const mjModel& model) {
  mjModel* copy = nullptr;
  Trapped([&] { copy = mj_copyModel(nullptr, &model); });
  if (copy == nullptr) throw MujocoError("MuJoCo could not allocate mjModel");
  return {copy, mj_deleteModel};
}

}  // namespace pyfastenv
