// One worker's part of a call of a Batch or a RolloutPool: simulations on an mjData, by mj_step.
//
// A simulation either does all that a call asks of it, or keeps its row. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/failure_list.h"
#include "physics/simulations.h"
#include "physics/state_layout.h"
#include "physics/stop_signal.h"

namespace pyfastenv::physics {

class DataWorker {
 public:
  /// What all workers of a call share. Must stay until the next Begin.
  struct Call {
    const Task& task;
    std::span<Status> statuses;  // per item
    StopSignal& stop;
    FailureList& failures;  // by simulation
  };

  explicit DataWorker(int worker) : worker_(worker) {}

  /// For the next call. Worker 0 is the calling thread's, which asks for a Ctrl-C. May throw
  /// std::bad_alloc.
  void Begin(const Call& call);

  /// Runs the operation, or the motion, of one item of the call.
  void Run(int item) noexcept;
  /// Brings the data to where the last simulation left it, if that was done elsewhere.
  void FinishData() noexcept;

  /// The model or its fields are changed: what was made of them is forgotten.
  void Forget() { header_.reset(); }

 protected:
  bool ShouldStop() { return worker_ == 0 ? call_->stop.Poll() : call_->stop.raised(); }
  int32_t id(int item) const { return call_->task.id(item); }
  const Simulations& simulations() const { return call_->task.simulations; }
  const Motion& motion() const { return *call_->task.motion; }
  const mjModel& ModelOf(int32_t sim) const;

  const mjModel& Enter(int32_t sim);
  void LayOut(const mjModel& m);
  const double* FirstRow(int32_t sim);
  void Load(const mjModel& m, const double* row);
  void Step(const mjModel& m, const double* control);
  void Save(const mjModel& m, int item);
  void Fail(int item) noexcept;
  void EndByMujoco(int item, const double* row, int step) noexcept;
  void RecordStep(const mjModel& m, int item, int step);
  bool HasWarned() const;

  const int worker_;
  const Call* call_ = nullptr;
  mjData* data_ = nullptr;
  int step_ = 0;               // under way by mj_step
  StateLayout layout_;         // of the model whose row was set or compared last
  std::vector<double> state_;  // a row of it
  // the last item, if it was not done on the data: its row before its last steps, and how many
  int last_item_ = -1;
  const double* last_row_ = nullptr;
  int last_steps_ = 0;

 private:
  void ResetData(int item) noexcept;
  void MoveFrom(const mjModel& m, int item, int step);

  const mjModel* laid_out_ = nullptr;           // in this call
  std::unique_ptr<mjModel> header_;             // of the model, with a simulation's own fields
  std::vector<std::vector<std::byte>> copies_;  // of the arrays that are copied, by field
};

}  // namespace pyfastenv::physics
