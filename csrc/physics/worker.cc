#include "physics/worker.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/thread_clock.h"
#include "lanes/number_access.h"
#include "lanes/sensors.h"
#include "mujoco/error_trap.h"
#include "physics/stages.h"

namespace pyfastenv::physics {

using Turn = EngineTurns::Turn;

namespace {

// Steps that lanes do at a time, between two looks at whether to stop.
constexpr int kMostSteps = 64;

}  // namespace

void Worker::RunLanes(std::span<const int> items, const PlanInUse& lanes) noexcept {
  try {
    StartLanes(items, lanes);
  } catch (...) {  // no memory for lanes: mj_step needs none
    for (const int item : items) Run(item);
    return;
  }
  const int step = StepLanes(items.size());
  if (call_->stop.raised()) return;
  const int all_steps = std::max(motion().num_steps, call_->task.lane_steps);
  for (const Lane& lane : lanes_) {
    if (step < all_steps) {
      left_.emplace_back(lane, step);
    } else if (!EndLane(lane)) {
      left_.emplace_back(Lane{lane.item, lane.next, lane.row}, step - 1);
    }
  }
  // the last item leaves the data as they should be
  std::sort(left_.begin(), left_.end(),
            [](const auto& a, const auto& b) { return a.first.item < b.first.item; });
  for (const auto& [lane, from] : left_) {
    if (lane.item == last_item_) last_row_ = nullptr;
    EndByMujoco(lane.item, lane.row, from);
  }
}

void Worker::StartLanes(std::span<const int> items, const PlanInUse& lanes) {
  if (stepper_ == nullptr || &stepper_->plan() != lanes.plan.get()) {
    stepper_.reset();
    stepper_ = std::make_unique<lanes::LaneStepper>(lanes.plan);
  }
  if (turns_.choice() != lanes.choice) turns_ = EngineTurns(lanes.choice);
  trust_ = lanes.trust;
  const Simulations& all = simulations();
  const mjModel& m = ModelOf(id(items[0]));
  data_ = all.data[static_cast<size_t>(worker_)];
  sensordata_.resize(static_cast<size_t>(m.nsensordata));
  LayOut(m);
  layout_.Select(motion().controls == nullptr ? 0 : motion().control_spec, inputs_);
  const auto& records = motion().records;
  recorded_.resize(records.size());
  for (size_t i = 0; i < records.size(); ++i) layout_.Select(records[i].spec, recorded_[i]);
  const size_t row_size = layout_.size();
  lane_rows_.resize(2 * row_size * items.size());
  lanes_.clear();
  lanes_.reserve(items.size());
  left_.clear();
  left_.reserve(items.size());
  numbers_.reserve(items.size() * stepper_->plan().fields().size());
  num_numbered_ = 0;
  double* rows = lane_rows_.data();
  for (const int item : items) {
    const Lane lane{item, rows, rows + row_size};
    rows += 2 * row_size;
    const double* const first = FirstRow(id(item));
    for (double* row : {lane.row, lane.next}) std::copy_n(first, row_size, row);
    MakeFlags(lane);
    lanes_.push_back(lane);
  }
  last_item_ = items.back();
  last_row_ = nullptr;
}

// Each lane's own numbers for the stepper; null if it knows them.
const double* const* Worker::FindNumbers() {
  const auto& wanted = stepper_->plan().fields();
  if (wanted.empty() || num_numbered_ == lanes_.size()) return nullptr;
  const Simulations& all = simulations();
  numbers_.clear();
  for (const Lane& lane : lanes_) {
    const auto sim = static_cast<size_t>(id(lane.item));
    for (const lanes::Number number : wanted) {
      const auto own =
          std::find_if(all.fields.begin(), all.fields.end(),
                       [&](const BoundField& field) { return field.number == number; });
      if (own != all.fields.end()) {
        numbers_.push_back(reinterpret_cast<const double*>(own->values + sim * own->field.bytes));
      } else {
        numbers_.push_back(lanes::Get(ModelOf(id(lane.item)), number));
      }
    }
  }
  num_numbered_ = lanes_.size();
  return numbers_.data();
}

void Worker::SetControl(const Lane& lane, int step) {
  const double* control = motion().control(lane.item, step);
  for (const StateLayout::Part& input : inputs_) {
    for (double* row : {lane.row, lane.next}) std::copy_n(control, input.size, row + input.begin);
    control += input.size;
  }
  if ((motion().control_spec & mjSTATE_EQ_ACTIVE) != 0) MakeFlags(lane);
}

// As mj_setState reads which equalities are active.
void Worker::MakeFlags(const Lane& lane) const {
  const StateLayout::Part flags = layout_.part(mjSTATE_EQ_ACTIVE);
  for (double* row : {lane.row, lane.next}) {
    const std::span of_row(row + flags.begin, flags.size);
    std::ranges::transform(of_row, of_row.begin(), [](double x) { return x != 0 ? 1.0 : 0.0; });
  }
}

// Whether something of this kind is read after the steps up to this one.
template <class Is>
bool Worker::Reads(int end, Is is) const {
  const auto& records = motion().records;
  const auto& outputs = simulations().outputs;
  const auto reads = [&](const Record& record) { return record.spec == 0 && is(record); };
  return std::any_of(records.begin(), records.end(), reads) ||
         (GivesOutputs(end) && std::any_of(outputs.begin(), outputs.end(), is));
}

// Does with all lanes what lanes may do. Those that could not do it are left_; lanes_ are at the
// step that it returns.
int Worker::StepLanes(size_t num_items) {
  const int lane_steps = call_->task.lane_steps;
  const bool each = motion().every_step();
  const bool reads_last = Reads(lane_steps, [](const Output&) { return true; });
  size_t alive = num_items;  // others stand still
  Turn turn = Turn::kLanes;
  int step = 0;
  while (step < lane_steps && !lanes_.empty() && !ShouldStop()) {
    if (step == 0 || each) turn = trust_->broken() ? Turn::kMujoco : turns_.Next();
    const bool shrunk = lanes_.size() < alive;
    alive = lanes_.size();
    if (turn == Turn::kMujoco ||
        (shrunk &&
         !turns_.choice()->PaysWith(static_cast<int>(alive), static_cast<int>(num_items)))) {
      if (each) turns_.choice()->Spend(lane_steps - step);
      break;
    }
    const int rest = lane_steps - step;
    // what is read is the last step's
    const int most = each ? 1 : std::max(1, reads_last ? rest - 1 : rest);
    const int num_steps = std::min(most, kMostSteps);
    StepGroup(step, num_steps, turn);
    step += num_steps;
  }
  return step;
}

void Worker::StepGroup(int step, int num_steps, Turn turn) {
  const bool both = turn == Turn::kBoth;
  const bool keeps = Reads(step + num_steps, [](const Output& output) {
    return output.lane_field && lanes::LaneStepper::NeedsKeeping(*output.lane_field);
  });
  const bool senses =
      Reads(step + num_steps, [](const Output& output) { return output.sensordata; });
  std::array<const double*, lanes::kMaxWidth> rows{};
  std::array<double*, lanes::kMaxWidth> next{};
  std::array<const mjModel*, lanes::kMaxWidth> models{};
  const auto count = static_cast<int>(lanes_.size());
  const int64_t begin = turns_.timed() ? ThreadNanoseconds() : 0;
  for (int l = 0; l < count; ++l) {
    Lane& lane = lanes_[static_cast<size_t>(l)];
    if (!inputs_.empty()) SetControl(lane, step);
    rows[static_cast<size_t>(l)] = lane.row;
    next[static_cast<size_t>(l)] = lane.next;
    models[static_cast<size_t>(l)] = &ModelOf(id(lane.item));
    lane.at = l;
  }
  stepper_->SetModels(models.data(), count);
  unsigned redo =
      stepper_->Step(rows.data(), next.data(), count, num_steps, keeps, FindNumbers(), senses);
  const auto velocity = static_cast<size_t>(stepper_->plan().tables().row.qvel);
  for (const Lane& lane : lanes_) DisturbIfAsked(lane.next[velocity]);
  for (int l = 0; l < count && !both; ++l) {
    if ((redo >> l & 1) == 0 && !RecordLane(lanes_[static_cast<size_t>(l)], step)) redo |= 1u << l;
  }
  const int64_t middle = turns_.timed() ? ThreadNanoseconds() : 0;
  const int missed = std::popcount(redo) * num_steps;
  lane_steps_ += int64_t{count} * num_steps;
  steps_left_ += missed;
  turns_.CountLanes(count * num_steps, missed, middle - begin);
  size_t moving = 0;
  for (int l = 0; l < count; ++l) {
    Lane lane = lanes_[static_cast<size_t>(l)];
    const bool left = (redo >> l & 1) != 0;
    if (lane.item == last_item_) {
      last_row_ = lane.row;
      last_steps_ = num_steps;
    }
    if ((both || left) && !StepByMujoco(lane, step, num_steps, both && !left)) continue;
    std::swap(lane.row, lane.next);
    lanes_[moving++] = lane;
  }
  lanes_.resize(moving);
  if (both) turns_.CountMujoco(count * num_steps, ThreadNanoseconds() - middle);
}

// Does with mj_step what lanes left to it, or have done and is compared. False: lanes have nothing
// more to do with it.
bool Worker::StepByMujoco(const Lane& lane, int step, int num_steps, bool compares) noexcept {
  const int end = step + num_steps;
  step_ = step;
  try {
    const mjModel& m = Enter(id(lane.item));
    if (compares && Reads(end, [](const Output& output) { return output.sensordata; })) {
      compares = lanes::WriteSensordata(*stepper_, lane.at, m, *data_, sensordata_.data());
    }
    Load(m, lane.row);
    for (int i = 0; i < num_steps && Moves(); ++i) Step(m, nullptr);
    if (!Moves()) Trapped([&] { ComputeStages(m, *data_, motion().stage); });
    if (compares) Compare(m, lane, end - 1);
    if (HasWarned()) {
      left_.emplace_back(lane, step);
      return false;
    }
    RecordStep(m, lane.item, step);
    if (GivesOutputs(end)) {
      Save(m, lane.item);
      return false;
    }
    Trapped([&] { mj_getState(&m, data_, lane.next, mjSTATE_INTEGRATION); });
    return true;
  } catch (...) {
    Fail(lane.item);
    return false;
  }
}

// Records a step that lanes have done; false: mj_step must do it after all.
bool Worker::RecordLane(const Lane& lane, int step) {
  for (size_t i = 0; i < motion().records.size(); ++i) {
    const Record& record = motion().records[i];
    std::byte* to = record.At(lane.item, motion().num_steps, step);
    if (record.spec == 0 && !ReadLane(lane, record, to)) return false;
    for (const StateLayout::Part& part : recorded_[i]) {
      const size_t bytes = sizeof(double) * part.size;
      std::memcpy(to, lane.next + part.begin, bytes);
      to += bytes;
    }
  }
  return true;
}

// One output after the last step of lanes; false: mj_step must do the step.
bool Worker::ReadLane(const Lane& lane, const Output& output, std::byte* to) {
  auto* const numbers = reinterpret_cast<double*>(to);
  if (!output.sensordata) {
    stepper_->Read(*output.lane_field, lane.at, numbers);
    return true;
  }
  return lanes::WriteSensordata(*stepper_, lane.at, Enter(id(lane.item)), *data_, numbers);
}

// Saves a simulation of which lanes have done all; false: mj_step must do the last step.
bool Worker::EndLane(const Lane& lane) {
  const Simulations& all = simulations();
  const int32_t sim = id(lane.item);
  for (const BoundOutput& output : all.outputs) {
    std::byte* const to = output.to + static_cast<size_t>(sim) * output.field.bytes;
    if (!ReadLane(lane, output, to)) return false;
  }
  if (Moves() && !motion().set_row) std::copy_n(lane.row, all.row_size, all.row(sim));
  call_->statuses[static_cast<size_t>(lane.item)] = Status::kRan;
  return true;
}

// Compares the data after mj_step with what lanes have made of it.
void Worker::Compare(const mjModel& m, const Lane& lane, int step) {
  const auto size = static_cast<int>(stepper_->plan().tables().row.ctrl);
  mj_getState(&m, data_, state_.data(), mjSTATE_INTEGRATION);
  std::string name;
  std::optional<lanes::Difference> difference;
  if (Moves()) difference = lanes::FindDifference(lane.next, state_.data(), size);
  const auto look_at = [&](const Output& output) {
    if (difference) return;
    if (output.lane_field) {
      difference = lanes::FindDifference(*stepper_, lane.at, *output.lane_field, *data_);
      if (!difference) return;
      name = std::string(lanes::LaneStepper::Name(*output.lane_field)) + "[" +
             std::to_string(difference->index) + "]";
    } else if (output.sensordata) {
      difference = lanes::FindDifference(sensordata_.data(), data_->sensordata,
                                         static_cast<int>(sensordata_.size()));
      if (difference) name = lanes::NameOfSensordata(m, difference->index);
    }
  };
  for (const Record& record : motion().records) look_at(record);
  for (const BoundOutput& output : simulations().outputs) {
    if (GivesOutputs(step + 1)) look_at(output);
  }
  if (!difference) return;
  const std::string where =
      Moves() ? "step " + std::to_string(step) + " of " + motion().what : "a batch's forward";
  trust_->Break(lanes::Describe(m, stepper_->width(), where, *difference, name));
}

}  // namespace pyfastenv::physics
