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
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "physics/plan_cache.h"
#include "physics/simulations.h"
#include "physics/workers.h"

namespace pyfastenv::physics {

class Batch {
 public:
  /// `simulations` as Simulations says, with data for every thread, or simulation. `plans` must
  /// outlive the batch.
  Batch(Simulations simulations, int num_threads, PlanCache& plans)
      : plans_(plans), simulations_(std::move(simulations)), workers_("batch", num_threads) {}

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

  std::pair<int64_t, int64_t> CountLaneSteps() { return workers_.CountLaneSteps(); }

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

  PlanCache& plans_;
  Simulations simulations_;
  // in which numbers (bits of lanes::Number) simulations may differ; nothing: lanes cannot do it
  std::optional<uint64_t> numbers_ = 0;
  PlanInUse lanes_;          // once found
  int64_t steps_asked_ = 0;  // without a plan, since the model or its fields were changed
  bool sensed_ = false;      // whether lanes_ was asked for with sensors
  std::vector<int> order_;   // 0 …, of items
  Workers workers_;
};

}  // namespace pyfastenv::physics
