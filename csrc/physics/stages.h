// What MuJoCo computes of a state without moving it, up to a stage.
#pragma once

#include <mujoco/mujoco.h>

namespace pyfastenv::physics {

/// mjSTAGE_POS: all of the position; mjSTAGE_VEL: as mj_step1; mjSTAGE_ACC: as mj_forward. Plain C
/// calls (mujoco/error_trap.h).
inline void ComputeStages(const mjModel& m, mjData& d, int stage) {
  if (stage == mjSTAGE_POS) {
    mj_fwdPosition(&m, &d);
    mj_sensorPos(&m, &d);
    if ((m.opt.enableflags & mjENBL_ENERGY) != 0) mj_energyPos(&m, &d);
  } else if (stage == mjSTAGE_VEL) {
    mj_step1(&m, &d);
  } else if (stage == mjSTAGE_ACC) {
    mj_forward(&m, &d);
  }
}

}  // namespace pyfastenv::physics
