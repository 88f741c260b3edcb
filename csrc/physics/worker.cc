#include "physics/worker.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
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

void Worker::Begin(const Call& call) {
  call_ = &call;
  laid_out_ = nullptr;
  last_row_ = nullptr;
  state_.resize(simulations().row_size);
  const auto& fields = simulations().fields;
  if (header_ != nullptr || fields.empty()) return;
  copies_.assign(fields.size(), {});
  header_ = std::make_unique<mjModel>(*simulations().model);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].copied) continue;
    // bodies' volumes, and those of meshes behind them
    const auto* volumes = reinterpret_cast<const std::byte*>(header_->bvh_aabb);
    copies_[i].assign(volumes,
                      volumes + 6 * sizeof(mjtNum) * static_cast<size_t>(header_->nbvhstatic));
    *fields[i].field.array(*header_) = copies_[i].data();
  }
}

// As it was given, without own fields.
const mjModel& Worker::ModelOf(int32_t sim) const {
  const Simulations& all = simulations();
  return all.models.empty() ? *all.model : *all.models[static_cast<size_t>(sim)];
}

// The model of a simulation, with its own fields.
const mjModel& Worker::Enter(int32_t sim) {
  const Simulations& all = simulations();
  const auto which = static_cast<size_t>(sim);
  data_ = all.data[all.persistent ? which : static_cast<size_t>(worker_)];
  if (all.fields.empty()) return ModelOf(sim);
  for (size_t i = 0; i < all.fields.size(); ++i) {
    const BoundField& own = all.fields[i];
    std::byte* const values = own.values + which * own.field.bytes;
    if (own.copied) {
      std::memcpy(copies_[i].data(), values, own.field.bytes);
    } else if (own.field.array != nullptr) {
      *own.field.array(*header_) = values;
    } else {
      std::memcpy(own.field.value(*header_), values, own.field.bytes);
    }
  }
  return *header_;
}

// Sets the data to a row, with no warnings.
void Worker::Load(const mjModel& m, const double* row) {
  std::memset(data_->warning, 0, sizeof(data_->warning));
  const bool persistent = simulations().persistent;
  const unsigned kept = call_->task.motion == nullptr ? 0 : motion().kept;
  if (!persistent && kept == 0) {
    Trapped([&] { mj_setState(&m, data_, row, mjSTATE_INTEGRATION); });
    return;
  }
  double* const state = state_.data();
  Trapped([&] {
    if (persistent) mj_getState(&m, data_, state, mjSTATE_INTEGRATION);
    int offset = 0;
    for (int bit = 1; bit < (1 << mjNSTATE); bit <<= 1) {
      if ((bit & mjSTATE_INTEGRATION) == 0) continue;
      const int size = mj_stateSize(&m, bit);
      const size_t bytes = sizeof(double) * static_cast<size_t>(size);
      // what has not been changed stays: setting it would wake what sleeps
      const bool same = persistent && std::memcmp(state + offset, row + offset, bytes) == 0;
      if (!same && (static_cast<unsigned>(bit) & kept) == 0) {
        mj_setState(&m, data_, row + offset, bit);
      }
      offset += size;
    }
  });
}

// One mj_step under these inputs (null: as they stand).
void Worker::Step(const mjModel& m, const double* control) {
  try {
    Trapped([&] {
      if (control != nullptr) {
        mj_setState(&m, data_, control, static_cast<int>(motion().control_spec));
      }
      mj_step(&m, data_);
    });
  } catch (const MujocoError&) {
    const std::string said =
        motion().take_callback_error ? motion().take_callback_error() : std::string();
    if (said.empty()) throw;
    throw MujocoError(said);
  }
}

void Worker::Save(const mjModel& m, int item) {
  call_->statuses[static_cast<size_t>(item)] = Status::kRan;
  const Simulations& all = simulations();
  if (all.warnings == nullptr) return;  // of a rollout only the records count
  const int32_t sim = id(item);
  double* const row = all.row(sim);
  Trapped([&] { mj_getState(&m, data_, row, mjSTATE_INTEGRATION); });
  for (const BoundOutput& output : all.outputs) {
    std::memcpy(output.to + static_cast<size_t>(sim) * output.field.bytes,
                output.field.find(*data_), output.field.bytes);
  }
  mjWarningStat* const warnings = all.warning(sim);
  for (int i = 0; i < mjNWARNING; ++i) {
    if (data_->warning[i].number == 0) continue;
    warnings[i].number += data_->warning[i].number;
    warnings[i].lastinfo = data_->warning[i].lastinfo;
  }
}

void Worker::Fail(int item) noexcept {
  call_->failures.AddCurrentException(id(item));
  call_->statuses[static_cast<size_t>(item)] = Status::kFailed;
  if (call_->task.motion != nullptr && motion().marks_failures) {
    for (const Record& record : motion().records) {
      auto* const from = reinterpret_cast<double*>(record.At(item, motion().num_steps, step_));
      const auto steps = static_cast<size_t>(motion().num_steps - step_);
      std::fill_n(from, steps * (record.bytes / sizeof(double)),
                  std::numeric_limits<double>::quiet_NaN());
    }
  }
  ResetData(item);
}

void Worker::ResetData(int item) noexcept {
  try {
    Trapped([&] { mj_resetData(&ModelOf(id(item)), data_); });
  } catch (...) {
    return;  // the next simulation will say what is wrong
  }
}

void Worker::Run(int item) noexcept {
  if (ShouldStop()) return;
  const int32_t sim = id(item);
  if (call_->task.motion != nullptr) {
    last_row_ = nullptr;
    if (motion().set_row) motion().set_row(sim);
    return EndByMujoco(item, simulations().row(sim), 0);
  }
  const Operation& operation = *call_->task.operation;
  try {
    const mjModel& m = Enter(sim);
    if (!operation.resets) Load(m, simulations().row(sim));
    Trapped([&] { operation.run(m, *data_, item); });
    if (operation.resets) {
      std::fill_n(simulations().warning(sim), mjNWARNING, mjWarningStat{});
      Save(m, item);
    } else {
      call_->statuses[static_cast<size_t>(item)] = Status::kRan;
    }
  } catch (...) {
    Fail(item);
  }
}

// Runs a motion from this step on, at which the state is `row`.
void Worker::EndByMujoco(int item, const double* row, int step) noexcept {
  step_ = step;
  try {
    const mjModel& m = Enter(id(item));
    Load(m, row);
    MoveFrom(m, item, step);
  } catch (...) {
    Fail(item);
  }
}

void Worker::MoveFrom(const mjModel& m, int item, int step) {
  for (step_ = step; step_ < motion().num_steps; ++step_) {
    if (ShouldStop()) return;
    if (!motion().stops || !HasWarned()) Step(m, motion().control(item, step_));
    RecordStep(m, item, step_);
  }
  Trapped([&] { ComputeStages(m, *data_, motion().stage); });
  Save(m, item);
}

bool Worker::HasWarned() const {
  return std::any_of(std::begin(data_->warning), std::end(data_->warning),
                     [](const mjWarningStat& warning) { return warning.number != 0; });
}

void Worker::RecordStep(const mjModel& m, int item, int step) {
  for (const Record& record : motion().records) {
    std::byte* const to = record.At(item, motion().num_steps, step);
    if (record.spec == 0) {
      std::memcpy(to, record.field.find(*data_), record.bytes);
    } else {
      Trapped([&] {
        mj_getState(&m, data_, reinterpret_cast<mjtNum*>(to), static_cast<int>(record.spec));
      });
    }
  }
}

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

void Worker::FinishData() noexcept {
  if (last_row_ == nullptr) return;
  try {
    const mjModel& m = Enter(id(last_item_));
    Load(m, last_row_);
    for (int i = 0; i < last_steps_; ++i) Step(m, nullptr);
  } catch (...) {
    ResetData(last_item_);
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
  lane_rows_.resize(2 * all.row_size * items.size());
  lanes_.clear();
  lanes_.reserve(items.size());
  left_.clear();
  left_.reserve(items.size());
  numbers_.reserve(items.size() * stepper_->plan().fields().size());
  num_numbered_ = 0;
  if (&m != laid_out_) {
    laid_out_ = &m;
    FindParts(m, motion().controls == nullptr ? 0 : motion().control_spec, inputs_);
    const auto& records = motion().records;
    recorded_.resize(records.size());
    for (size_t i = 0; i < records.size(); ++i) FindParts(m, records[i].spec, recorded_[i]);
  }
  double* rows = lane_rows_.data();
  for (const int item : items) {
    const Lane lane{item, rows, rows + all.row_size};
    rows += 2 * all.row_size;
    if (motion().set_row) motion().set_row(id(item));
    for (double* row : {lane.row, lane.next}) std::copy_n(all.row(id(item)), all.row_size, row);
    lanes_.push_back(lane);
  }
  last_item_ = items.back();
  last_row_ = nullptr;
}

// Where components of the state stand in a row: in the order of their bits, neighbours together.
void Worker::FindParts(const mjModel& m, unsigned spec, std::vector<Part>& parts) {
  parts.clear();
  size_t row = 0;
  for (unsigned bit = 1; spec != 0 && bit < (1u << mjNSTATE); bit <<= 1) {
    if ((bit & mjSTATE_INTEGRATION) == 0) continue;
    const auto size = static_cast<size_t>(mj_stateSize(&m, static_cast<int>(bit)));
    if ((bit & spec) == 0) {
      row += size;
      continue;
    }
    if (!parts.empty() && parts.back().row + parts.back().size == row) {
      parts.back().size += size;
    } else {
      parts.push_back({row, size});
    }
    row += size;
  }
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
  for (const Part& input : inputs_) {
    for (double* row : {lane.row, lane.next}) std::copy_n(control, input.size, row + input.row);
    control += input.size;
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
  const auto count = static_cast<int>(lanes_.size());
  const int64_t begin = turns_.timed() ? ThreadNanoseconds() : 0;
  for (int l = 0; l < count; ++l) {
    Lane& lane = lanes_[static_cast<size_t>(l)];
    if (!inputs_.empty()) SetControl(lane, step);
    rows[static_cast<size_t>(l)] = lane.row;
    next[static_cast<size_t>(l)] = lane.next;
    lane.at = l;
  }
  unsigned redo =
      stepper_->Step(rows.data(), next.data(), count, num_steps, keeps, FindNumbers(), senses);
  if (LanesAreDisturbed()) {
    const auto velocity = static_cast<size_t>(stepper_->plan().tables().row.qvel);
    for (const Lane& lane : lanes_) lane.next[velocity] = std::nextafter(lane.next[velocity], 1e9);
  }
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
    if (Moves()) {
      for (int i = 0; i < num_steps; ++i) Step(m, nullptr);
    } else {
      Trapped([&] { ComputeStages(m, *data_, motion().stage); });
    }
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
    for (const Part& part : recorded_[i]) {
      const size_t bytes = sizeof(double) * part.size;
      std::memcpy(to, lane.next + part.row, bytes);
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
  if (Moves()) std::copy_n(lane.row, all.row_size, all.row(sim));
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
