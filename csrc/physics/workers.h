// The threads of a Batch or a RolloutPool: one call's jobs, worked off by all of them.
//
// Threads: what is public is for whoever has passed the gate, but for the constructor and size.
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
#include "physics/plan_cache.h"
#include "physics/worker.h"

namespace pyfastenv::physics {

/// Items that one worker runs at a time, in lanes if there is a plan.
struct Job {
  std::span<const int> items;
  PlanInUse lanes;
};

/// How a call went.
struct Outcome {
  bool interrupted = false;          // some simulations have not run
  std::vector<EnvFailure> failures;  // by simulation
  std::vector<Status> statuses;      // per item of the call
};

/// Groups of about the same size for so many workers, none wider than `width`; 0 if lanes do not
/// pay for groups so small.
int CountLaneGroups(int count, int workers, int width);

/// Adds a job for each of so many groups of about the same size.
void Split(std::span<const int> items, int groups, const PlanInUse& lanes, std::vector<Job>& jobs);

class Workers {
 public:
  /// `kind`: of the object whose they are, for its gate.
  Workers(const char* kind, int num_threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int size() const { return pool_->num_threads(); }
  /// One call at a time, and what is changed between two.
  CallGate& gate() { return gate_; }

  /// Runs jobs that have `count` items together. `leaves_data`: afterwards each worker's data hold
  /// what the last step of its last item left there, whichever engine ran it.
  Outcome Run(const Task& task, const std::vector<Job>& jobs, size_t count, bool leaves_data,
              const Interrupted& interrupted);

  /// Models or their fields are changed.
  void ForgetModels();

  /// Steps that lanes were asked for so far, and those of them that they left to mj_step. Waits for
  /// a call under way.
  std::pair<int64_t, int64_t> CountLaneSteps();

 private:
  class JobsWork;

  CallGate gate_;
  std::vector<Worker> workers_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<BarrierBatch> batch_;
};

}  // namespace pyfastenv::physics
