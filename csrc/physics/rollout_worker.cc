#include "physics/rollout_worker.h"

#include <algorithm>
#include <array>
#include <bit>

namespace pyfastenv::physics {

void RolloutWorker::Begin(const RolloutRequest& request, mjData& data, StopSignal& stop,
                          FailureList& failures, bool polls) {
  request_ = &request;
  data_ = &data;
  stop_ = &stop;
  failures_ = &failures;
  polls_ = polls;
  last_row_ = nullptr;
}

void RolloutWorker::Run(int rollout) noexcept {
  last_row_ = nullptr;
  const mjModel& m = request_->model(rollout);
  DataStepper stepper(*request_, *data_);
  int step = 0;
  try {
    stepper.Start(rollout);
    for (; step < request_->num_steps && !ShouldStop(); ++step) {
      if (stepper.Warned()) {
        stepper.WriteFrom(rollout, step);
        return;
      }
      stepper.Step(m, request_->control(rollout, step));
      stepper.Write(rollout, step);
    }
  } catch (...) {
    failures_->AddCurrentException(rollout);
    stepper.Fail(rollout, step);
  }
}

void RolloutWorker::RunLanes(int first, int count,
                             const std::shared_ptr<const lanes::Plan>& plan) noexcept {
  try {
    StartLanes(first, count, plan);
  } catch (...) {  // no memory for lanes: mj_step needs none
    for (int i = 0; i < count; ++i) Run(first + i);
    return;
  }
  for (int step = 0; step < request_->num_steps && !lanes_.empty() && !ShouldStop(); ++step) {
    StepLanes(step);
  }
}

void RolloutWorker::StartLanes(int first, int count,
                               const std::shared_ptr<const lanes::Plan>& plan) {
  if (stepper_ == nullptr || &stepper_->plan() != plan.get()) {
    stepper_.reset();
    stepper_ = std::make_unique<lanes::LaneStepper>(plan);
  }
  const lanes::Tables& tables = plan->tables();
  const auto size = static_cast<size_t>(tables.row.size);
  // zeros: no rollout in lanes has other inputs than ctrl, and equalities as in its model
  rows_.assign(2 * size * static_cast<size_t>(count), 0.0);
  lanes_.clear();
  lanes_.reserve(static_cast<size_t>(count));
  double* rows = rows_.data();
  for (int i = 0; i < count; ++i) {
    const Lane lane{first + i, rows, rows + size};
    rows += 2 * size;
    const mjModel& m = request_->model(lane.rollout);
    for (double* row : {lane.row, lane.next}) {
      std::copy_n(m.eq_active0, m.neq, row + tables.row.eq_active);
    }
    std::copy_n(request_->initial_state(lane.rollout), request_->state_size, lane.row);
    if (const double* warmstart = request_->warmstart(lane.rollout); warmstart != nullptr) {
      std::copy_n(warmstart, tables.nv, lane.row + tables.row.warmstart);
    }
    lanes_.push_back(lane);
  }
  last_rollout_ = first + count - 1;
}

void RolloutWorker::StepLanes(int step) {
  std::array<const double*, lanes::kMaxWidth> rows{};
  std::array<double*, lanes::kMaxWidth> next{};
  const size_t ctrl = static_cast<size_t>(stepper_->plan().tables().row.ctrl);
  for (size_t l = 0; l < lanes_.size(); ++l) {
    const Lane& lane = lanes_[l];
    if (const double* control = request_->control(lane.rollout, step); control != nullptr) {
      std::copy_n(control, request_->control_size, lane.row + ctrl);
    }
    if (lane.rollout == last_rollout_) last_row_ = lane.row;
    rows[l] = lane.row;
    next[l] = lane.next;
  }
  const unsigned redo =
      stepper_->Step(rows.data(), next.data(), static_cast<int>(lanes_.size()), 1, false);
  lane_steps_ += static_cast<int64_t>(lanes_.size());
  steps_left_ += std::popcount(redo);
  size_t moving = 0;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    Lane lane = lanes_[l];
    if ((redo >> l & 1) != 0) {
      if (!StepByMujoco(lane, step)) continue;
    } else if (double* state = request_->state(lane.rollout, step); state != nullptr) {
      std::copy_n(lane.next, request_->state_size, state);
    }
    std::swap(lane.row, lane.next);
    lanes_[moving++] = lane;
  }
  lanes_.resize(moving);
}

// Does with mj_step what lanes left to it. Returns false if the rollout stands still from here on.
bool RolloutWorker::StepByMujoco(const Lane& lane, int step) {
  const mjModel& m = request_->model(lane.rollout);
  DataStepper stepper(*request_, *data_);
  try {
    stepper.StartAt(m, lane.row);
    stepper.Step(m, nullptr);
    if (stepper.Warned()) {
      stepper.WriteFrom(lane.rollout, step);
      return false;
    }
    stepper.Write(lane.rollout, step);
  } catch (...) {
    failures_->AddCurrentException(lane.rollout);
    stepper.Fail(lane.rollout, step);
    return false;
  }
  mj_getState(&m, data_, lane.next, mjSTATE_FULLPHYSICS | mjSTATE_WARMSTART);
  return true;
}

void RolloutWorker::FinishData() noexcept {
  if (last_row_ == nullptr) return;
  const mjModel& m = request_->model(last_rollout_);
  DataStepper stepper(*request_, *data_);
  try {
    stepper.StartAt(m, last_row_);
    stepper.Step(m, nullptr);
  } catch (...) {
    stepper.Fail(last_rollout_, request_->num_steps);
  }
}

}  // namespace pyfastenv::physics
