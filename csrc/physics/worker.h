// One worker's part of a call of a Batch or a RolloutPool: simulations on an mjData, or in lanes.
//
// A simulation either does all that a call asks of it, or keeps its row. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/engine_choice.h"
#include "core/failure_list.h"
#include "lanes/difference.h"
#include "lanes/lane_stepper.h"
#include "physics/plan_cache.h"
#include "physics/simulations.h"
#include "physics/stop_signal.h"

namespace pyfastenv::physics {

class Worker {
 public:
  /// What all workers of a call share. Must stay until the next Begin.
  struct Call {
    const Task& task;
    std::span<Status> statuses;  // per item
    StopSignal& stop;
    FailureList& failures;  // by simulation
  };

  explicit Worker(int worker) : worker_(worker) {}

  /// For the next call. Worker 0 is the calling thread's, which asks for a Ctrl-C. May throw
  /// std::bad_alloc.
  void Begin(const Call& call);

  /// Runs the operation, or the motion by mj_step, of one item of the call.
  void Run(int item) noexcept;
  /// Runs the motion of items, ascending and at most the plan's width, in lanes, or by mj_step
  /// where that is faster. Their models differ in the plan's fields at most. Now and then a step is
  /// done both ways; if a bit differs, the model's trust is broken and mj_step goes on.
  void RunLanes(std::span<const int> items, const PlanInUse& lanes) noexcept;
  /// Brings the data to where the last simulation left it, if lanes ran that.
  void FinishData() noexcept;

  /// The model or its fields are changed: what was made of them is forgotten.
  void Forget() { header_.reset(); }

  /// Steps that lanes were asked for, and those of them that they left to mj_step, in all calls.
  int64_t lane_steps() const { return lane_steps_; }
  int64_t steps_left() const { return steps_left_; }

 private:
  // an item in a lane: its row, the row after the next steps, and its place in the last ones
  struct Lane {
    int item;
    double* row;
    double* next;
    int at = -1;
  };

  // where a component of the state stands in a row
  struct Part {
    size_t row, size;
  };

  bool ShouldStop() { return worker_ == 0 ? call_->stop.Poll() : call_->stop.raised(); }
  int32_t id(int item) const { return call_->task.id(item); }
  const Simulations& simulations() const { return call_->task.simulations; }
  const Motion& motion() const { return *call_->task.motion; }
  const mjModel& ModelOf(int32_t sim) const;

  const mjModel& Enter(int32_t sim);
  void Load(const mjModel& m, const double* row);
  void Step(const mjModel& m, const double* control);
  void Save(const mjModel& m, int item);
  void Fail(int item) noexcept;
  void ResetData(int item) noexcept;
  void EndByMujoco(int item, const double* row, int step) noexcept;
  void MoveFrom(const mjModel& m, int item, int step);
  void RecordStep(const mjModel& m, int item, int step);
  bool HasWarned() const;

  void StartLanes(std::span<const int> items, const PlanInUse& lanes);
  static void FindParts(const mjModel& m, unsigned spec, std::vector<Part>& parts);
  const double* const* FindNumbers();
  void SetControl(const Lane& lane, int step);
  int StepLanes(size_t num_items);
  void StepGroup(int step, int num_steps, EngineTurns::Turn turn);
  bool StepByMujoco(const Lane& lane, int step, int num_steps, bool compares) noexcept;
  bool RecordLane(const Lane& lane, int step);
  bool ReadLane(const Lane& lane, const Output& output, std::byte* to);
  bool EndLane(const Lane& lane);
  void Compare(const mjModel& m, const Lane& lane, int step);
  template <class Is>
  bool Reads(int end, Is is) const;
  /// Whether the steps up to this one are all, and lanes give the outputs.
  bool GivesOutputs(int end) const { return end >= motion().num_steps; }
  /// Whether steps are asked for, or what mj_forward computes.
  bool Moves() const { return motion().num_steps > 0; }

  const int worker_;
  const Call* call_ = nullptr;
  mjData* data_ = nullptr;
  int step_ = 0;                                // under way by mj_step
  std::unique_ptr<mjModel> header_;             // of the model, with a simulation's own fields
  std::vector<std::vector<std::byte>> copies_;  // of the arrays that are copied, by field
  std::vector<double> state_;                   // a row

  std::unique_ptr<lanes::LaneStepper> stepper_;  // of the plan that was used last
  EngineTurns turns_;                            // likewise
  std::shared_ptr<LaneTrust> trust_;             // likewise
  const mjModel* laid_out_ = nullptr;            // of this call, whose rows have these parts:
  std::vector<Part> inputs_;                     // that controls have
  std::vector<std::vector<Part>> recorded_;      // of states, per record
  std::vector<double> lane_rows_;                // two per lane
  std::vector<Lane> lanes_;                      // that still move
  std::vector<std::pair<Lane, int>> left_;  // that mj_step goes on with, and from which step on
  std::vector<const double*> numbers_;      // of the plan's fields, of each lane
  size_t num_numbered_ = 0;                 // lanes that the stepper has these of
  std::vector<double> sensordata_;          // of the lane that is compared
  int64_t lane_steps_ = 0, steps_left_ = 0;
  // the last item, if lanes ran it: its row before its last steps, and how many these were
  int last_item_ = -1;
  const double* last_row_ = nullptr;
  int last_steps_ = 0;
};

}  // namespace pyfastenv::physics
