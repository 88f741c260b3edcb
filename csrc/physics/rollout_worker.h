// One worker's part of a RolloutPool's call: runs rollouts on the worker's mjData, or in lanes.
//
// The mjData afterwards holds what the last step of the worker's last rollout left there, whichever
// engine ran it (FinishData). Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine_choice.h"
#include "core/failure_list.h"
#include "lanes/difference.h"
#include "lanes/lane_stepper.h"
#include "physics/data_stepper.h"
#include "physics/plan_cache.h"
#include "physics/rollout_request.h"
#include "physics/stop_signal.h"

namespace pyfastenv::physics {

class RolloutWorker {
 public:
  /// For the next call. `polls`: this is the calling thread's worker, which asks for a Ctrl-C.
  /// All must stay until the next Begin.
  void Begin(const RolloutRequest& request, mjData& data, StopSignal& stop, FailureList& failures,
             bool polls);

  /// Runs one rollout with mj_step. Returns early when told to stop.
  void Run(int rollout) noexcept;

  /// Runs rollouts, ascending and at most the plan's width, in lanes, or by mj_step where that is
  /// faster. Their models differ in the plan's fields at most. Now and then a step is done both
  /// ways; if a bit differs, the model's trust is broken and mj_step goes on. A control that is not
  /// given is zero. The plan has sensors if the request senses().
  void RunLanes(std::span<const int> rollouts, const PlanInUse& lanes) noexcept;

  /// Brings the data to where the last rollout left it, if lanes ran that.
  void FinishData() noexcept;

  /// Steps that lanes were asked for, and those of them that they left to mj_step, in all calls.
  /// Between calls.
  int64_t lane_steps() const { return lane_steps_; }
  int64_t steps_left() const { return steps_left_; }

 private:
  // a rollout in a lane: its row and the row after the next step
  struct Lane {
    int rollout;
    double* row;
    double* next;
  };

  // where a component of the controls stands in a row
  struct Input {
    size_t row, size;
  };

  bool ShouldStop() { return polls_ ? stop_->Poll() : stop_->raised(); }
  void StartLanes(std::span<const int> rollouts, const PlanInUse& lanes);
  const double* const* FindNumbers();
  void FindInputs(const mjModel& m, const lanes::Tables& tables);
  void SetControl(const Lane& lane, int step);
  void StepLanes(int step, EngineTurns::Turn turn);
  bool StepByMujoco(const Lane& lane, int step);
  bool WriteLane(int l, const Lane& lane, int step);
  void Compare(const Lane& lane, int step);
  void Break(const mjModel& m, int step, const lanes::Difference& difference, bool sensed = false);
  bool Warned() const;
  void Disturb();
  void EndByMujoco(int step);

  const RolloutRequest* request_ = nullptr;
  mjData* data_ = nullptr;
  StopSignal* stop_ = nullptr;
  FailureList* failures_ = nullptr;
  bool polls_ = false;

  std::unique_ptr<lanes::LaneStepper> stepper_;  // of the plan that was used last
  EngineTurns turns_;                            // likewise
  std::shared_ptr<LaneTrust> trust_;             // likewise
  std::vector<double> compared_;                 // what lanes have made of a row
  std::vector<double> compared_sensors_;         // and of its sensordata
  std::vector<double> rows_;                     // two per lane
  std::vector<Lane> lanes_;                      // that still move
  std::vector<Input> inputs_;                    // that controls have
  std::vector<const double*> numbers_;           // of the plan's fields, of each lane
  size_t num_numbered_ = 0;                      // lanes that the stepper has these of; 0: none
  // the last rollout, if lanes ran it, and its row before its last step
  int last_rollout_ = -1;
  const double* last_row_ = nullptr;
  int64_t lane_steps_ = 0, steps_left_ = 0;
};

}  // namespace pyfastenv::physics
