// Many simulations of one model, stepped on a pool of threads: mujoco.batch's results bit for bit.
//
// Where the model allows it they step in lanes (lanes/), where not with mj_step, and so where
// mj_step is measured to be faster. Which of the two, and on how many threads, changes no bit.
//
// Threads: one call at a time; another thread's waits for it. A call from a signal handler inside a
// call, or in a forked child, throws UsageError (kBusy, kForked). Rows and arrays of a simulation
// are the workers' during a call of it, the caller's otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/barrier_batch.h"
#include "core/call_gate.h"
#include "core/errors.h"
#include "core/thread_pool.h"
#include "physics/batch_worker.h"
#include "physics/lane_jobs.h"
#include "physics/plan_cache.h"
#include "physics/simulations.h"

namespace pyfastenv::physics {

class Batch {
 public:
  struct Outcome {
    bool interrupted = false;          // some simulations have not run
    std::vector<EnvFailure> failures;  // by simulation
    std::vector<Status> statuses;      // per item of the call
  };

  /// `simulations` as Simulations says, with data for every thread, or simulation. `plans` must
  /// outlive the batch.
  Batch(Simulations simulations, int num_threads, PlanCache& plans);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  int num_threads() const { return pool_->num_threads(); }

  // Between calls:
  /// Copies this field out after every call, from the next one on.
  void AddOutput(const BoundOutput& output);
  /// Every simulation has its own values of these fields, and of no others, from the next call on.
  void SetFields(std::vector<BoundField> fields);
  /// Runs every simulation on a model of its own; none: on the batch's model.
  void SetModels(std::vector<const mjModel*> models);

  /// Ids ascend; interrupted is asked a few dozen times a second.
  Outcome Move(std::span<const int32_t> ids, const Motion& motion, const Interrupted& interrupted);
  Outcome Apply(std::span<const int32_t> ids, const Operation& operation,
                const Interrupted& interrupted);

  /// Steps that lanes were asked for so far, and those of them that they left to mj_step.
  std::pair<int64_t, int64_t> CountLaneSteps();

 private:
  Outcome Run(std::span<const int32_t> ids, const Motion* motion, const Operation* operation,
              const Interrupted& interrupted);
  const mjModel& FirstModel() const {
    return simulations_.models.empty() ? *simulations_.model : *simulations_.models[0];
  }
  int LaneSteps(const Motion& motion) const;
  PlanInUse FindLanes(const Motion& motion, size_t count);
  std::vector<Job> Divide(const Motion* motion, int lane_steps, size_t count);
  void ForgetModels();

  CallGate gate_{"batch"};
  PlanCache& plans_;
  Simulations simulations_;
  // in which numbers (bits of lanes::Number) simulations may differ; nothing: lanes cannot do it
  std::optional<uint64_t> numbers_ = 0;
  PlanInUse lanes_;          // once found
  int64_t steps_asked_ = 0;  // without a plan, since the model or its fields were changed
  bool sensed_ = false;      // whether lanes_ was asked for with sensors
  std::vector<int> order_;   // 0 …, of items
  std::vector<BatchWorker> workers_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<BarrierBatch> batch_;
};

}  // namespace pyfastenv::physics
