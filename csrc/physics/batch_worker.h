// One worker's part of a call of a Batch: simulations on an mjData, or in lanes.
//
// A simulation either does all that a call asks of it, or keeps its row. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/engine_choice.h"
#include "core/failure_list.h"
#include "lanes/difference.h"
#include "lanes/lane_stepper.h"
#include "physics/plan_cache.h"
#include "physics/simulations.h"
#include "physics/stop_signal.h"

namespace pyfastenv::physics {

class BatchWorker {
 public:
  /// What all workers of a call share. Must stay until the next Begin.
  struct Call {
    const Simulations& simulations;
    std::span<const int32_t> ids;
    const Motion* motion;  // one of the two
    const Operation* operation;
    int lane_steps;  // that lanes may do; mj_step does the motion's others. 1 of none: mj_forward
    std::span<Status> statuses;  // per item
    StopSignal& stop;
    FailureList& failures;  // by simulation
  };

  explicit BatchWorker(int worker) : worker_(worker) {}

  /// For the next call. Worker 0 is the calling thread's, which asks for a Ctrl-C. May throw
  /// std::bad_alloc.
  void Begin(const Call& call);

  /// Runs the operation, or the motion by mj_step, of one item of the call.
  void Run(int item) noexcept;
  /// Runs the motion of items, at most the plan's width, in lanes, or by mj_step where that is
  /// faster. Now and then it is done both ways; if a bit differs, the model's trust is broken.
  void RunLanes(std::span<const int> items, const PlanInUse& lanes) noexcept;

  /// The model or its fields are changed: what was made of them is forgotten.
  void Forget() { header_.reset(); }

  /// Steps that lanes were asked for, and those of them that they left to mj_step, in all calls.
  int64_t lane_steps() const { return lane_steps_; }
  int64_t steps_left() const { return steps_left_; }

 private:
  // an item in a lane: its row, the row after the next steps, and where it stood in the last ones
  struct Lane {
    int item;
    double* row;
    double* next;
    int at = -1;
  };

  bool ShouldStop() { return worker_ == 0 ? call_->stop.Poll() : call_->stop.raised(); }
  int32_t id(int item) const { return call_->ids[static_cast<size_t>(item)]; }
  const Simulations& simulations() const { return call_->simulations; }

  const mjModel& Enter(int32_t sim);
  void Load(const mjModel& m, const double* row);
  void Save(const mjModel& m, int item);
  void Fail(int item) noexcept;
  void Move(int item, const Lane* watched);
  void MoveFrom(const mjModel& m, int item, int step, const Lane* watched);
  void RecordStep(const mjModel& m, int item, int step);
  bool HasWarned() const;

  void StartLanes(std::span<const int> items, const PlanInUse& lanes);
  void FindInputs(const mjModel& m);
  const double* const* FindNumbers();
  void SetControl(const Lane& lane, int step);
  bool StepLanes();
  void StepGroup(int step, int num_steps);
  bool RecordLane(const Lane& lane, int step);
  bool ReadLane(const Lane& lane, const Output& output, std::byte* to);
  bool EndLane(const Lane& lane);
  void EndByMujoco(const Lane& lane, int step) noexcept;
  void Watch(const Lane& lane) noexcept;
  void Compare(const mjModel& m, const Lane& lane);
  template <class Is>
  bool Reads(bool last, Is is) const;
  /// Whether lanes do the last step, too, and give the outputs.
  bool GivesOutputs() const { return call_->lane_steps >= call_->motion->num_steps; }
  /// Whether steps are asked for, or what mj_forward computes.
  bool Moves() const { return call_->motion->num_steps > 0; }

  const int worker_;
  const Call* call_ = nullptr;
  mjData* data_ = nullptr;
  std::unique_ptr<mjModel> header_;             // of the model, with a simulation's own fields
  std::vector<std::vector<std::byte>> copies_;  // of the arrays that are copied, by field
  std::vector<double> state_;                   // a row

  std::unique_ptr<lanes::LaneStepper> stepper_;  // of the plan that was used last
  EngineTurns turns_;                            // likewise
  std::shared_ptr<LaneTrust> trust_;             // likewise
  // where a component of the controls stands in a row
  struct Input {
    size_t row, size;
  };
  std::vector<Input> inputs_;
  std::vector<double> lane_rows_;           // two per lane
  std::vector<Lane> lanes_;                 // that still move
  std::vector<std::pair<Lane, int>> left_;  // that mj_step goes on with, and from which step on
  std::vector<const double*> numbers_;      // of the plan's fields, of each lane
  size_t num_numbered_ = 0;                 // lanes that the stepper has these of
  std::vector<double> sensordata_;          // of the lane that is compared
  int64_t steps_ = 0, missed_ = 0;          // of the group under way
  int64_t lane_steps_ = 0, steps_left_ = 0;
};

}  // namespace pyfastenv::physics
