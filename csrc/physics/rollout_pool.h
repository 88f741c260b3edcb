// Open-loop rollouts of physics on a pool of threads: mujoco.rollout's results bit for bit.
//
// A rollout's beginning sets positions, velocities and warm start; inputs that the controls do not
// have are zero (mocap bodies and equality constraints: as in the model). Where a model allows it
// and several rollouts share it, they run in lanes (lanes/), where not with mj_step, and so where
// mj_step is measured to be faster. Which of the two, and on how many threads, changes no bit of a
// result.
//
// Threads: one Run at a time; another thread's waits for it. A Run from a signal handler inside a
// Run, or in a forked child, throws UsageError (kBusy, kForked).
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "physics/plan_cache.h"
#include "physics/simulations.h"
#include "physics/workers.h"

namespace pyfastenv::physics {

/// What one call is asked for. Everything has been checked: sizes fit the models, every data fits
/// every model, no data stands twice. Inputs that are the same for all rollouts have a stride of 0.
struct RolloutRequest {
  std::span<const mjModel* const> models;  // one per rollout
  std::vector<mjData*> data;               // one per worker
  int chunk_size = 1;                      // rollouts that a worker takes at a time
  const double* initial_states = nullptr;  // mjSTATE_FULLPHYSICS
  size_t initial_state_stride = 0;
  const double* warmstarts = nullptr;  // null: zeros
  size_t warmstart_stride = 0;
  // its control_spec holds without controls, too: what the data keep
  Motion motion;

  const mjModel& model(int rollout) const { return *models[static_cast<size_t>(rollout)]; }
};

class RolloutPool {
 public:
  /// `plans` must outlive the pool.
  RolloutPool(int num_threads, PlanCache& plans)
      : plans_(plans), workers_("rollout pool", num_threads) {}

  int num_threads() const { return workers_.size(); }

  /// The request has num_threads() data. Failures are by rollout.
  Outcome Run(RolloutRequest request, const Interrupted& interrupted);

  std::pair<int64_t, int64_t> CountLaneSteps() { return workers_.CountLaneSteps(); }

 private:
  std::vector<Job> Divide(const RolloutRequest& request);
  void AddJobs(const RolloutRequest& request, std::span<const int> rollouts, uint64_t numbers,
               std::vector<Job>& jobs);

  PlanCache& plans_;
  std::vector<int> order_;  // of the rollouts of the call under way
  Workers workers_;
};

}  // namespace pyfastenv::physics
