// What one call of RolloutPool is asked for: open-loop rollouts, each from an initial state under
// given controls.
//
// Everything has been checked: sizes fit the models, every data fits every model, no data stands
// twice. Inputs whose leading axes have one entry for all have a stride of 0.
#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace pyfastenv::physics {

struct RolloutRequest {
  std::span<const mjModel* const> models;  // one per rollout
  std::span<mjData* const> data;           // one per worker
  int num_steps = 0;                       // at least 1
  unsigned control_spec = mjSTATE_CTRL;    // which inputs `controls` has, of mjSTATE_USER
  int chunk_size = 1;                      // rollouts that a worker takes at a time

  // sizes, the same for all models
  size_t state_size = 0;  // of mjSTATE_FULLPHYSICS
  size_t control_size = 0;
  size_t sensor_size = 0;

  const double* initial_states = nullptr;
  size_t initial_state_stride = 0;
  const double* warmstarts = nullptr;  // null: zeros
  size_t warmstart_stride = 0;
  const double* controls = nullptr;  // null: data keeps what it has of control_spec
  size_t control_rollout_stride = 0;
  size_t control_step_stride = 0;

  double* states = nullptr;      // (rollouts, num_steps, state_size), or null
  double* sensordata = nullptr;  // (rollouts, num_steps, sensor_size), or null

  /// Whether sensors have numbers, and somebody reads them.
  bool senses() const { return sensordata != nullptr && sensor_size > 0; }

  /// Asked after an error of the engine, on its thread: what a callback of the user's had to say,
  /// and forgets it; empty if it was not one of theirs.
  std::function<std::string()> take_callback_error;

  int num_rollouts() const { return static_cast<int>(models.size()); }
  const mjModel& model(int rollout) const { return *models[static_cast<size_t>(rollout)]; }
  const double* initial_state(int rollout) const {
    return initial_states + static_cast<size_t>(rollout) * initial_state_stride;
  }
  /// Null if there are none.
  const double* warmstart(int rollout) const {
    return warmstarts == nullptr ? nullptr
                                 : warmstarts + static_cast<size_t>(rollout) * warmstart_stride;
  }
  /// Null if there are none.
  const double* control(int rollout, int step) const {
    return controls == nullptr ? nullptr
                               : controls + static_cast<size_t>(rollout) * control_rollout_stride +
                                     static_cast<size_t>(step) * control_step_stride;
  }
  /// Where results go; null if they are not asked for.
  double* state(int rollout, int step) const { return At(states, state_size, rollout, step); }
  double* sensors(int rollout, int step) const {
    return At(sensordata, sensor_size, rollout, step);
  }

 private:
  double* At(double* array, size_t size, int rollout, int step) const {
    if (array == nullptr) return nullptr;
    const size_t row =
        static_cast<size_t>(rollout) * static_cast<size_t>(num_steps) + static_cast<size_t>(step);
    return array + row * size;
  }
};

}  // namespace pyfastenv::physics
