// Rollouts on one mjData, with mj_step, exactly as mujoco.rollout runs them.
//
// A rollout's beginning sets positions, velocities and warm start; inputs that the controls do not
// have are zero (mocap bodies and equality constraints: as in the model). Once MuJoCo has warned,
// the rollout stands still: every later step repeats the results of the step that warned.
//
// Not thread-safe. What runs the engine throws MujocoError, or what a callback threw; then call
// Fail, which makes the mjData usable again.
#pragma once

#include "physics/rollout_request.h"

namespace pyfastenv::physics {

class DataStepper {
 public:
  DataStepper(const RolloutRequest& request, mjData& data) : request_(request), data_(data) {}

  /// Sets the data to the beginning of a rollout.
  void Start(int rollout);
  /// Sets it to a row of mjSTATE_FULLPHYSICS, WARMSTART and CTRL; other inputs are cleared.
  void StartAt(const mjModel& m, const double* row);

  /// One mj_step under these inputs (null: as they stand).
  void Step(const mjModel& m, const double* control);
  /// Whether MuJoCo has warned since the last Start.
  bool Warned() const;

  /// Writes the results of a rollout's step, or of all its steps from this one on.
  void Write(int rollout, int step) const;
  void WriteFrom(int rollout, int step) const;
  /// Where it cannot be known any more: NaN; the data is reset.
  void Fail(int rollout, int step) noexcept;

 private:
  void ClearInputs(const mjModel& m);
  void ClearWarnings();

  const RolloutRequest& request_;
  mjData& data_;
};

}  // namespace pyfastenv::physics
