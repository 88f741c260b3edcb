// Open-loop rollouts of physics on a pool of threads: mujoco.rollout's results bit for bit.
//
// Where a model allows it and several rollouts share it, they run in lanes (lanes/), where not with
// mj_step, and so where mj_step is measured to be faster. Which of the two, and on how many
// threads, changes no bit of a result.
//
// Threads: one Run at a time; another thread's waits for it. A Run from a signal handler inside a
// Run, or in a forked child, throws UsageError (kBusy, kForked).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/barrier_batch.h"
#include "core/call_gate.h"
#include "core/errors.h"
#include "core/thread_pool.h"
#include "physics/lane_jobs.h"
#include "physics/plan_cache.h"
#include "physics/rollout_request.h"
#include "physics/rollout_worker.h"

namespace pyfastenv::physics {

class RolloutPool {
 public:
  struct Outcome {
    bool interrupted = false;          // results are incomplete
    std::vector<EnvFailure> failures;  // by rollout: NaN from the step that failed on
  };

  /// `plans` must outlive the pool.
  RolloutPool(int num_threads, PlanCache& plans);
  ~RolloutPool();
  RolloutPool(const RolloutPool&) = delete;
  RolloutPool& operator=(const RolloutPool&) = delete;

  int num_threads() const { return pool_->num_threads(); }

  /// The request has num_threads() data.
  Outcome Run(const RolloutRequest& request, const Interrupted& interrupted);

  /// Steps that lanes were asked for so far, and those of them that they left to mj_step. Waits for
  /// a call under way.
  std::pair<int64_t, int64_t> CountLaneSteps();

 private:
  std::vector<Job> Divide(const RolloutRequest& request);
  void AddJobs(const RolloutRequest& request, std::span<const int> rollouts, uint64_t numbers,
               std::vector<Job>& jobs);

  CallGate gate_{"rollout pool"};
  PlanCache& plans_;
  std::vector<int> order_;  // of the rollouts of the call under way
  std::vector<RolloutWorker> workers_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<BarrierBatch> batch_;
};

}  // namespace pyfastenv::physics
