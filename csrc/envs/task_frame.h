// What a function of an own task sees: one environment, for the length of one call.
//
// Plain C, so that whatever makes machine code can fill the functions in: pyfastenv/tasks compiles
// them from Python, or from C++ that includes envs/task.h. Its compiler knows this layout by
// FrameOffsets (envs/task_symbols.h).
//
// Nothing here belongs to the function. `data` holds this environment's state (what
// mjSTATE_INTEGRATION is made of); everything derived from it is another environment's until
// its bit of `fresh` is set, which pyfastenv_simulate and pyfastenv_mj_forward do.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>

namespace pyfastenv {

class FunctionEnv;
class Random;

/// The parts of mjData, besides the state, that are this environment's: bits of TaskFrame::fresh.
enum Fresh : int64_t {
  kFreshPlaces = 1,         // what mj_step1 computes, of positions and velocities
  kFreshAccelerations = 2,  // what mj_step2 computes: forces, accelerations, sensors of them
  kFreshRowForces = 4,      // the forces of the contacts that mjData lists
  kFreshBodyForces = 8,     // cacc, cfrc_int, cfrc_ext
  kFreshWhole = 16,         // all that mj_step2 starts from: the engine's mj_step1 was here last
};
constexpr int64_t kFreshForward = kFreshPlaces | kFreshAccelerations | kFreshRowForces;

struct TaskFrame {
  const mjModel* model;   // the worker's header, with this environment's own fields
  mjData* data;           // the worker's
  const void* action;     // of TaskDescription::action_dtype
  double* obs;            // (obs_size)
  double* info;           // (info_size)
  double* memory;         // (memory_size), part of the row
  const double* command;  // part of the row, set by reset_task
  const void* params;     // 8 bytes each: double or int64_t
  Random* random;         // the environment's stream; null in control and observation
  FunctionEnv* env;
  double reward;
  int64_t terminated;
  int64_t fresh;  // bits of Fresh
};

/// Returns 0, or another status and in `*exception` what its compiler knows to read. `*result` is
/// not used. (This is numba's calling convention for `int32 f(frame)`.)
using TaskFunction = int32_t (*)(int32_t* result, void** exception, TaskFrame* frame);

}  // namespace pyfastenv
