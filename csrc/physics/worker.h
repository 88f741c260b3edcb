// One worker's part of a call of a Batch or a RolloutPool: simulations in lanes, or on an mjData.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/engine_choice.h"
#include "lanes/difference.h"
#include "lanes/lane_stepper.h"
#include "physics/data_worker.h"
#include "physics/plan_cache.h"

namespace pyfastenv::physics {

class Worker : public DataWorker {
 public:
  using DataWorker::DataWorker;

  /// Runs the motion of items, ascending and at most the plan's width, in lanes, or by mj_step
  /// where that is faster. Their models differ in the plan's fields at most. Now and then a step is
  /// done both ways; if a bit differs, the model's trust is broken and mj_step goes on.
  void RunLanes(std::span<const int> items, const PlanInUse& lanes) noexcept;

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

  void StartLanes(std::span<const int> items, const PlanInUse& lanes);
  const double* const* FindNumbers();
  void SetControl(const Lane& lane, int step);
  void MakeFlags(const Lane& lane) const;
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

  std::unique_ptr<lanes::LaneStepper> stepper_;           // of the plan that was used last
  EngineTurns turns_;                                     // likewise
  std::shared_ptr<LaneTrust> trust_;                      // likewise
  std::vector<StateLayout::Part> inputs_;                 // of a row, that controls have
  std::vector<std::vector<StateLayout::Part>> recorded_;  // of states, per record
  std::vector<double> lane_rows_;                         // two per lane
  std::vector<Lane> lanes_;                               // that still move
  std::vector<std::pair<Lane, int>> left_;  // that mj_step goes on with, and from which step on
  std::vector<const double*> numbers_;      // of the plan's fields, of each lane
  size_t num_numbered_ = 0;                 // lanes that the stepper has these of
  std::vector<double> sensordata_;          // of the lane that is compared
  int64_t lane_steps_ = 0, steps_left_ = 0;
};

}  // namespace pyfastenv::physics
