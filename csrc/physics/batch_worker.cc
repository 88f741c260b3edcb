#include "physics/batch_worker.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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

void BatchWorker::Begin(const Call& call) {
  call_ = &call;
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

// The model of a simulation, with its own fields.
const mjModel& BatchWorker::Enter(int32_t sim) {
  const Simulations& all = simulations();
  const auto which = static_cast<size_t>(sim);
  data_ = all.data[all.persistent ? which : static_cast<size_t>(worker_)];
  if (!all.models.empty()) return *all.models[which];
  if (all.fields.empty()) return *all.model;
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
void BatchWorker::Load(const mjModel& m, const double* row) {
  std::memset(data_->warning, 0, sizeof(data_->warning));
  if (!simulations().persistent) {
    Trapped([&] { mj_setState(&m, data_, row, mjSTATE_INTEGRATION); });
    return;
  }
  // what has not been changed stays: setting it would wake what sleeps
  double* const state = state_.data();
  Trapped([&] {
    mj_getState(&m, data_, state, mjSTATE_INTEGRATION);
    int offset = 0;
    for (int bit = 1; bit < (1 << mjNSTATE); bit <<= 1) {
      if ((bit & mjSTATE_INTEGRATION) == 0) continue;
      const int size = mj_stateSize(&m, bit);
      const size_t bytes = sizeof(double) * static_cast<size_t>(size);
      if (std::memcmp(state + offset, row + offset, bytes) != 0) {
        mj_setState(&m, data_, row + offset, bit);
      }
      offset += size;
    }
  });
}

void BatchWorker::Save(const mjModel& m, int item) {
  const Simulations& all = simulations();
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
  call_->statuses[static_cast<size_t>(item)] = Status::kRan;
}

void BatchWorker::Fail(int item) noexcept {
  call_->failures.AddCurrentException(id(item));
  call_->statuses[static_cast<size_t>(item)] = Status::kFailed;
  try {
    Trapped([&] { mj_resetData(simulations().model, data_); });
  } catch (...) {
    return;  // the next simulation will say what is wrong
  }
}

void BatchWorker::Run(int item) noexcept {
  if (ShouldStop()) return;
  try {
    if (call_->motion != nullptr) return Move(item, nullptr);
    const Operation& operation = *call_->operation;
    const int32_t sim = id(item);
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

void BatchWorker::Move(int item, const Lane* watched) {
  const int32_t sim = id(item);
  const mjModel& m = Enter(sim);
  Load(m, simulations().row(sim));
  MoveFrom(m, item, 0, watched);
}

// From this step on, as the data are; compares what lanes have done of it (`watched`), if they
// have.
void BatchWorker::MoveFrom(const mjModel& m, int item, int step, const Lane* watched) {
  const Motion& motion = *call_->motion;
  const auto spec = static_cast<int>(motion.control_spec);
  for (; step < motion.num_steps; ++step) {
    if (ShouldStop()) return;
    if (motion.stops && HasWarned()) {
      RecordStep(m, item, step);
      continue;
    }
    const double* const control = motion.control(item, step);
    Trapped([&] {
      if (control != nullptr) mj_setState(&m, data_, control, spec);
      mj_step(&m, data_);
    });
    RecordStep(m, item, step);
    if (watched != nullptr && step + 1 == call_->lane_steps) Compare(m, *watched);
  }
  Trapped([&] { ComputeStages(m, *data_, motion.stage); });
  if (watched != nullptr && !Moves()) Compare(m, *watched);
  Save(m, item);
}

bool BatchWorker::HasWarned() const {
  return std::any_of(std::begin(data_->warning), std::end(data_->warning),
                     [](const mjWarningStat& warning) { return warning.number != 0; });
}

void BatchWorker::RecordStep(const mjModel& m, int item, int step) {
  const Motion& motion = *call_->motion;
  for (const Record& record : motion.records) {
    std::byte* const to = record.At(item, motion.num_steps, step);
    if (record.spec == 0) {
      std::memcpy(to, record.field.find(*data_), record.bytes);
    } else {
      Trapped([&] {
        mj_getState(&m, data_, reinterpret_cast<mjtNum*>(to), static_cast<int>(record.spec));
      });
    }
  }
}

void BatchWorker::RunLanes(std::span<const int> items, const PlanInUse& lanes) noexcept {
  try {
    StartLanes(items, lanes);
  } catch (...) {  // no memory for lanes: mj_step needs none
    for (const int item : items) Run(item);
    return;
  }
  const Turn turn = trust_->broken() ? Turn::kMujoco : turns_.Next();
  if (turn == Turn::kMujoco) {
    for (const int item : items) Run(item);
    return;
  }
  const int64_t begin = turns_.timed() ? ThreadNanoseconds() : 0;
  const bool done = StepLanes();
  const int64_t middle = turns_.timed() ? ThreadNanoseconds() : 0;
  lane_steps_ += steps_;
  steps_left_ += missed_;
  turns_.CountLanes(static_cast<int>(steps_), static_cast<int>(missed_), middle - begin);
  if (!done) return;
  const auto watched = static_cast<int>(lanes_.size());
  for (const Lane& lane : lanes_) {
    if (turn == Turn::kBoth) {
      Watch(lane);
    } else if (!GivesOutputs()) {
      EndByMujoco(lane, call_->lane_steps);
    } else if (!EndLane(lane)) {
      left_.emplace_back(Lane{lane.item, lane.next, lane.row}, call_->lane_steps - 1);
    }
  }
  if (turn == Turn::kBoth) {
    turns_.CountMujoco(watched * std::max(1, call_->motion->num_steps),
                       ThreadNanoseconds() - middle);
  }
  for (const auto& [lane, step] : left_) EndByMujoco(lane, step);
}

void BatchWorker::StartLanes(std::span<const int> items, const PlanInUse& lanes) {
  if (stepper_ == nullptr || &stepper_->plan() != lanes.plan.get()) {
    stepper_.reset();
    stepper_ = std::make_unique<lanes::LaneStepper>(lanes.plan);
  }
  if (turns_.choice() != lanes.choice) turns_ = EngineTurns(lanes.choice);
  trust_ = lanes.trust;
  const Simulations& all = simulations();
  data_ = all.data[static_cast<size_t>(worker_)];
  sensordata_.resize(static_cast<size_t>(all.model->nsensordata));
  lane_rows_.resize(2 * all.row_size * items.size());
  lanes_.clear();
  lanes_.reserve(items.size());
  left_.clear();
  left_.reserve(2 * items.size());
  numbers_.reserve(items.size() * stepper_->plan().fields().size());
  FindInputs(*all.model);
  steps_ = missed_ = 0;
  num_numbered_ = 0;
  double* rows = lane_rows_.data();
  for (const int item : items) {
    const Lane lane{item, rows, rows + all.row_size};
    rows += 2 * all.row_size;
    for (double* row : {lane.row, lane.next}) std::copy_n(all.row(id(item)), all.row_size, row);
    lanes_.push_back(lane);
  }
}

void BatchWorker::FindInputs(const mjModel& m) {
  inputs_.clear();
  if (call_->motion->controls == nullptr) return;
  for (int bit = 1; bit < (1 << mjNSTATE); bit <<= 1) {
    if ((static_cast<unsigned>(bit) & call_->motion->control_spec) == 0) continue;
    // rows hold components in the order of their bits
    inputs_.push_back({static_cast<size_t>(mj_stateSize(&m, mjSTATE_INTEGRATION & (bit - 1))),
                       static_cast<size_t>(mj_stateSize(&m, bit))});
  }
}

// Each lane's own numbers for the stepper; null if it knows them.
const double* const* BatchWorker::FindNumbers() {
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
        numbers_.push_back(lanes::Get(all.models.empty() ? *all.model : *all.models[sim], number));
      }
    }
  }
  num_numbered_ = lanes_.size();
  return numbers_.data();
}

void BatchWorker::SetControl(const Lane& lane, int step) {
  const double* control = call_->motion->control(lane.item, step);
  for (const Input& input : inputs_) {
    for (double* row : {lane.row, lane.next}) std::copy_n(control, input.size, row + input.row);
    control += input.size;
  }
}

// Whether something of this kind is read after a step.
template <class Is>
bool BatchWorker::Reads(bool last, Is is) const {
  const auto& records = call_->motion->records;
  const auto& outputs = simulations().outputs;
  const auto reads = [&](const Record& record) { return record.spec == 0 && is(record); };
  return std::any_of(records.begin(), records.end(), reads) ||
         (last && GivesOutputs() && std::any_of(outputs.begin(), outputs.end(), is));
}

// Does with all lanes what lanes may do; those that could not do it are left_. False: stopped.
bool BatchWorker::StepLanes() {
  const bool each = call_->motion->every_step();
  const bool reads_last = Reads(true, [](const Output&) { return true; });
  for (int step = 0; step < call_->lane_steps && !lanes_.empty();) {
    if (ShouldStop()) return false;
    const int rest = call_->lane_steps - step;
    // what is read is the last step's
    const int most = each ? 1 : std::max(1, reads_last ? rest - 1 : rest);
    const int num_steps = std::min(most, kMostSteps);
    StepGroup(step, num_steps);
    step += num_steps;
  }
  return true;
}

void BatchWorker::StepGroup(int step, int num_steps) {
  const bool last = step + num_steps == call_->lane_steps;
  const bool keeps = Reads(last, [](const Output& output) {
    return output.lane_field && lanes::LaneStepper::NeedsKeeping(*output.lane_field);
  });
  const bool senses = Reads(last, [](const Output& output) { return output.sensordata; });
  std::array<const double*, lanes::kMaxWidth> rows{};
  std::array<double*, lanes::kMaxWidth> next{};
  const auto count = static_cast<int>(lanes_.size());
  for (size_t l = 0; l < lanes_.size(); ++l) {
    if (!inputs_.empty()) SetControl(lanes_[l], step);
    rows[l] = lanes_[l].row;
    next[l] = lanes_[l].next;
  }
  const unsigned redo =
      stepper_->Step(rows.data(), next.data(), count, num_steps, keeps, FindNumbers(), senses);
  const auto velocity = static_cast<size_t>(stepper_->plan().tables().row.qvel);
  const bool disturbed = LanesAreDisturbed();
  size_t moving = 0;
  for (int l = 0; l < count; ++l) {
    Lane lane = lanes_[static_cast<size_t>(l)];
    const Lane before = lane;
    if (disturbed) lane.next[velocity] = std::nextafter(lane.next[velocity], 1e9);
    std::swap(lane.row, lane.next);
    lane.at = l;
    if ((redo >> l & 1) != 0 || !RecordLane(lane, step)) {
      left_.emplace_back(before, step);
      missed_ += num_steps;
    } else {
      lanes_[moving++] = lane;
    }
  }
  lanes_.resize(moving);
  steps_ += int64_t{count} * num_steps;
}

// Records of a step that lanes have done; false: mj_step must do it after all.
bool BatchWorker::RecordLane(const Lane& lane, int step) {
  const Motion& motion = *call_->motion;
  for (const Record& record : motion.records) {
    std::byte* to = record.At(lane.item, motion.num_steps, step);
    if (record.spec == 0) {
      if (!ReadLane(lane, record, to)) return false;
      continue;
    }
    const mjModel& m = *simulations().model;
    for (int bit = 1; bit < (1 << mjNSTATE); bit <<= 1) {
      if ((record.spec & static_cast<unsigned>(bit)) == 0) continue;
      const size_t bytes = sizeof(double) * static_cast<size_t>(mj_stateSize(&m, bit));
      std::memcpy(to, lane.row + mj_stateSize(&m, mjSTATE_INTEGRATION & (bit - 1)), bytes);
      to += bytes;
    }
  }
  return true;
}

// One output after the last step of lanes; false: mj_step must do the step.
bool BatchWorker::ReadLane(const Lane& lane, const Output& output, std::byte* to) {
  auto* const numbers = reinterpret_cast<double*>(to);
  if (!output.sensordata) {
    stepper_->Read(*output.lane_field, lane.at, numbers);
    return true;
  }
  return lanes::WriteSensordata(*stepper_, lane.at, Enter(id(lane.item)), *data_, numbers);
}

// Saves a simulation of which lanes have done all; false: mj_step must do the last step.
bool BatchWorker::EndLane(const Lane& lane) {
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

void BatchWorker::EndByMujoco(const Lane& lane, int step) noexcept {
  try {
    const mjModel& m = Enter(id(lane.item));
    Load(m, lane.row);
    MoveFrom(m, lane.item, step, nullptr);
  } catch (...) {
    Fail(lane.item);
  }
}

// Does a simulation that lanes have done by mj_step, too, and compares.
void BatchWorker::Watch(const Lane& lane) noexcept {
  try {
    if (GivesOutputs() && Reads(true, [](const Output& output) { return output.sensordata; }) &&
        !lanes::WriteSensordata(*stepper_, lane.at, Enter(id(lane.item)), *data_,
                                sensordata_.data())) {
      return Move(lane.item, nullptr);
    }
    Move(lane.item, &lane);
  } catch (...) {
    Fail(lane.item);
  }
}

// Compares the data after mj_step with what lanes have made of it.
void BatchWorker::Compare(const mjModel& m, const Lane& lane) {
  const auto size = static_cast<int>(stepper_->plan().tables().row.ctrl);
  mj_getState(&m, data_, state_.data(), mjSTATE_INTEGRATION);
  std::string name;
  std::optional<lanes::Difference> difference;
  if (Moves()) difference = lanes::FindDifference(lane.row, state_.data(), size);
  for (const BoundOutput& output : simulations().outputs) {
    if (difference || !GivesOutputs()) break;
    if (output.lane_field) {
      difference = lanes::FindDifference(*stepper_, lane.at, *output.lane_field, *data_);
      if (difference) {
        name = std::string(lanes::LaneStepper::Name(*output.lane_field)) + "[" +
               std::to_string(difference->index) + "]";
      }
    } else {
      difference = lanes::FindDifference(sensordata_.data(), data_->sensordata,
                                         static_cast<int>(sensordata_.size()));
      if (difference) name = lanes::NameOfSensordata(m, difference->index);
    }
  }
  if (!difference) return;
  const std::string where =
      Moves() ? "the end of " + std::to_string(call_->lane_steps) + " steps of a batch's call"
              : "a batch's forward";
  trust_->Break(lanes::Describe(m, stepper_->width(), where, *difference, name));
}

}  // namespace pyfastenv::physics
