#include "physics/rollout_worker.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "core/thread_clock.h"
#include "lanes/number_access.h"
#include "lanes/sensors.h"

namespace pyfastenv::physics {

using Turn = EngineTurns::Turn;

namespace {

// What rollouts have where controls say nothing else; all other inputs are zero.
void SetModelsInputs(const mjModel& m, const lanes::RowLayout& at, double* row) {
  std::copy_n(m.eq_active0, m.neq, row + at.eq_active);
  for (int i = 0; i < m.nbody; ++i) {
    const int mocap = m.body_mocapid[i];
    if (mocap < 0) continue;
    mju_copy3(row + at.mocap_pos + 3 * mocap, m.body_pos + 3 * i);
    mju_copy4(row + at.mocap_quat + 4 * mocap, m.body_quat + 4 * i);
  }
}

}  // namespace

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

void RolloutWorker::RunLanes(std::span<const int> rollouts, const PlanInUse& lanes) noexcept {
  try {
    StartLanes(rollouts, lanes);
  } catch (...) {  // no memory for lanes: mj_step needs none
    for (const int rollout : rollouts) Run(rollout);
    return;
  }
  size_t alive = lanes_.size();  // others stand still
  for (int step = 0; step < request_->num_steps && !lanes_.empty() && !ShouldStop(); ++step) {
    const Turn turn = trust_->broken() ? Turn::kMujoco : turns_.Next();
    const bool shrunk = lanes_.size() < alive;
    alive = lanes_.size();
    if (turn == Turn::kMujoco ||
        (shrunk &&
         !turns_.choice()->PaysWith(static_cast<int>(alive), static_cast<int>(rollouts.size())))) {
      return EndByMujoco(step);
    }
    StepLanes(step, turn);
  }
}

void RolloutWorker::StartLanes(std::span<const int> rollouts, const PlanInUse& lanes) {
  if (stepper_ == nullptr || &stepper_->plan() != lanes.plan.get()) {
    stepper_.reset();
    stepper_ = std::make_unique<lanes::LaneStepper>(lanes.plan);
  }
  if (turns_.choice() != lanes.choice) turns_ = EngineTurns(lanes.choice);
  trust_ = lanes.trust;
  const mjModel& m = request_->model(rollouts[0]);
  const lanes::Tables& tables = lanes.plan->tables();
  compared_.resize(static_cast<size_t>(tables.row.ctrl));
  compared_sensors_.resize(request_->senses() ? request_->sensor_size : 0);
  const auto size = static_cast<size_t>(tables.row.size);
  FindInputs(m, tables);
  rows_.assign(2 * size * rollouts.size(), 0.0);
  lanes_.clear();
  lanes_.reserve(rollouts.size());
  num_numbered_ = 0;
  double* rows = rows_.data();
  for (const int rollout : rollouts) {
    const Lane lane{rollout, rows, rows + size};
    rows += 2 * size;
    for (double* row : {lane.row, lane.next}) {
      SetModelsInputs(request_->model(rollout), tables.row, row);
    }
    std::copy_n(request_->initial_state(lane.rollout), request_->state_size, lane.row);
    if (const double* warmstart = request_->warmstart(lane.rollout); warmstart != nullptr) {
      std::copy_n(warmstart, tables.nv, lane.row + tables.row.warmstart);
    }
    lanes_.push_back(lane);
  }
  last_rollout_ = rollouts.back();
}

// Each lane's own numbers, as its model has them, for the stepper; null if it knows them, since
// they do not change during a rollout.
const double* const* RolloutWorker::FindNumbers() {
  const auto& fields = stepper_->plan().fields();
  if (fields.empty() || num_numbered_ == lanes_.size()) return nullptr;
  numbers_.clear();
  for (const Lane& lane : lanes_) {
    for (const lanes::Number field : fields) {
      numbers_.push_back(lanes::Get(request_->model(lane.rollout), field));
    }
  }
  num_numbered_ = lanes_.size();
  return numbers_.data();
}

// Both rows and controls hold components in the order of their bits.
void RolloutWorker::FindInputs(const mjModel& m, const lanes::Tables& tables) {
  inputs_.clear();
  auto row = static_cast<size_t>(tables.row.ctrl);
  for (unsigned bit = 1; bit < (1u << mjNSTATE); bit <<= 1) {
    if ((bit & mjSTATE_USER) == 0) continue;
    const auto size = static_cast<size_t>(mj_stateSize(&m, static_cast<int>(bit)));
    if ((bit & request_->control_spec) != 0) inputs_.push_back({row, size});
    row += size;
  }
}

void RolloutWorker::SetControl(const Lane& lane, int step) {
  if (const double* control = request_->control(lane.rollout, step); control != nullptr) {
    for (const Input& input : inputs_) {
      std::copy_n(control, input.size, lane.row + input.row);
      control += input.size;
    }
  }
  if (lane.rollout == last_rollout_) last_row_ = lane.row;
}

void RolloutWorker::StepLanes(int step, Turn turn) {
  const bool both = turn == Turn::kBoth;
  std::array<const double*, lanes::kMaxWidth> rows{};
  std::array<double*, lanes::kMaxWidth> next{};
  const auto count = static_cast<int>(lanes_.size());
  const int64_t begin = turns_.timed() ? ThreadNanoseconds() : 0;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    SetControl(lanes_[l], step);
    rows[l] = lanes_[l].row;
    next[l] = lanes_[l].next;
  }
  unsigned redo =
      stepper_->Step(rows.data(), next.data(), count, 1, false, FindNumbers(), request_->senses());
  if (!both) {
    for (size_t l = 0; l < lanes_.size(); ++l) {
      if ((redo >> l & 1) == 0 && !WriteLane(static_cast<int>(l), lanes_[l], step)) redo |= 1u << l;
    }
  }
  const int64_t middle = turns_.timed() ? ThreadNanoseconds() : 0;
  lane_steps_ += count;
  steps_left_ += std::popcount(redo);
  if (LanesAreDisturbed()) Disturb();
  size_t moving = 0;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    Lane lane = lanes_[l];
    bool left = (redo >> l & 1) != 0;
    if (both && !left) {
      std::copy_n(lane.next, compared_.size(), compared_.data());
      left = request_->senses() &&
             !lanes::WriteSensordata(*stepper_, static_cast<int>(l), request_->model(lane.rollout),
                                     *data_, compared_sensors_.data());
    }
    if (both || left) {
      const bool moves = StepByMujoco(lane, step);
      if (both && !left && (moves || Warned())) Compare(lane, step);
      if (!moves) continue;
    }
    std::swap(lane.row, lane.next);
    lanes_[moving++] = lane;
  }
  lanes_.resize(moving);
  turns_.CountLanes(count, std::popcount(redo), middle - begin);
  if (both) turns_.CountMujoco(count, ThreadNanoseconds() - middle);
}

// Writes the results of a step that lanes have done; false: mj_step must do it after all.
bool RolloutWorker::WriteLane(int l, const Lane& lane, int step) {
  if (double* sensors = request_->sensors(lane.rollout, step); sensors != nullptr) {
    const mjModel& m = request_->model(lane.rollout);
    if (!lanes::WriteSensordata(*stepper_, l, m, *data_, sensors)) return false;
  }
  if (double* state = request_->state(lane.rollout, step); state != nullptr) {
    std::copy_n(lane.next, request_->state_size, state);
  }
  return true;
}

// Whether a rollout stands still because MuJoCo has warned, and not because it has failed.
bool RolloutWorker::Warned() const { return DataStepper(*request_, *data_).Warned(); }

// Compares what lanes have made of a row (compared_) and its sensors with what mj_step has left in
// the data.
void RolloutWorker::Compare(const Lane& lane, int step) {
  const mjModel& m = request_->model(lane.rollout);
  mj_getState(&m, data_, lane.next, mjSTATE_FULLPHYSICS | mjSTATE_WARMSTART);
  const auto compare = [&](const std::vector<double>& ours, const double* theirs) {
    return lanes::FindDifference(ours.data(), theirs, static_cast<int>(ours.size()));
  };
  if (const auto difference = compare(compared_, lane.next)) Break(m, step, *difference);
  if (const auto difference = compare(compared_sensors_, data_->sensordata)) {
    Break(m, step, *difference, /*sensed=*/true);
  }
}

void RolloutWorker::Break(const mjModel& m, int step, const lanes::Difference& difference,
                          bool sensed) {
  std::string said;
  try {
    const std::string where = "step " + std::to_string(step) + " of a rollout";
    const std::string name = sensed ? lanes::NameOfSensordata(m, difference.index) : "";
    said = lanes::Describe(m, stepper_->width(), where, difference, name);
  } catch (const std::bad_alloc&) {
    said.clear();
  }
  trust_->Break(std::move(said));
}

void RolloutWorker::Disturb() {
  const auto velocity = static_cast<size_t>(stepper_->plan().tables().row.qvel);
  for (const Lane& lane : lanes_) lane.next[velocity] = std::nextafter(lane.next[velocity], 1e9);
}

// Runs what is left of all rollouts, from this step on, one after the other.
void RolloutWorker::EndByMujoco(int step) {
  turns_.choice()->Spend(request_->num_steps - step);
  for (const Lane& lane : lanes_) {
    const mjModel& m = request_->model(lane.rollout);
    SetControl(lane, step);
    // the last one leaves the data as they should be
    if (lane.rollout == last_rollout_) last_row_ = nullptr;
    DataStepper stepper(*request_, *data_);
    int at = step;
    try {
      stepper.StartAt(m, lane.row);
      for (; at < request_->num_steps && !ShouldStop(); ++at) {
        if (stepper.Warned()) {
          stepper.WriteFrom(lane.rollout, at);
          break;
        }
        stepper.Step(m, request_->control(lane.rollout, at));
        stepper.Write(lane.rollout, at);
      }
    } catch (...) {
      failures_->AddCurrentException(lane.rollout);
      stepper.Fail(lane.rollout, at);
    }
  }
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
