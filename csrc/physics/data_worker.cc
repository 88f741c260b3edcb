#include "physics/data_worker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "mujoco/error_trap.h"
#include "mujoco/model_features.h"
#include "physics/stages.h"

namespace pyfastenv::physics {

void DataWorker::Begin(const Call& call) {
  call_ = &call;
  laid_out_ = nullptr;
  last_row_ = nullptr;
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
const mjModel& DataWorker::ModelOf(int32_t sim) const {
  const Simulations& all = simulations();
  return all.models.empty() ? *all.model : *all.models[static_cast<size_t>(sim)];
}

// The model of a simulation, with its own fields.
const mjModel& DataWorker::Enter(int32_t sim) {
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
  if (!all.persistent && SharesState(*header_)) {
    throw BadValue(
        "opt.enableflags: sleep, ipc and energies beside the sensor e_kinetic need "
        "persistent=True");
  }
  return *header_;
}

// Makes layout_ and state_ this model's. Others may stand at its address in the next call.
void DataWorker::LayOut(const mjModel& m) {
  if (&m == laid_out_) return;
  laid_out_ = &m;
  layout_ = StateLayout(m);
  state_.resize(layout_.size());
}

// The row that a simulation begins with; the call's own, or until state_ is written.
const double* DataWorker::FirstRow(int32_t sim) {
  LayOut(ModelOf(sim));
  if (call_->task.motion == nullptr || !motion().set_row) return simulations().row(sim);
  motion().set_row(sim, layout_, state_.data());
  return state_.data();
}

// Sets the data to a row, with no warnings.
void DataWorker::Load(const mjModel& m, const double* row) {
  std::memset(data_->warning, 0, sizeof(data_->warning));
  const bool persistent = simulations().persistent;
  const unsigned kept = call_->task.motion == nullptr ? 0 : motion().kept & layout_.bits();
  Trapped([&] {
    if (!persistent && kept == 0) return mj_setState(&m, data_, row, mjSTATE_INTEGRATION);
    if (persistent) mj_getState(&m, data_, state_.data(), mjSTATE_INTEGRATION);
    for (const auto& [bits, begin, size] : layout_.parts()) {
      // what has not been changed stays: setting it would wake what sleeps
      const bool same =
          persistent && std::memcmp(state_.data() + begin, row + begin, sizeof(double) * size) == 0;
      if (!same && (bits & kept) == 0) {
        mj_setState(&m, data_, row + begin, static_cast<int>(bits));
      }
    }
  });
}

// One mj_step under these inputs (null: as they stand).
void DataWorker::Step(const mjModel& m, const double* control) {
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

void DataWorker::Save(const mjModel& m, int item) {
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

void DataWorker::Fail(int item) noexcept {
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

void DataWorker::ResetData(int item) noexcept {
  try {
    Trapped([&] { mj_resetData(&ModelOf(id(item)), data_); });
  } catch (...) {
    return;  // the next simulation will say what is wrong
  }
}

void DataWorker::Run(int item) noexcept {
  if (ShouldStop()) return;
  const int32_t sim = id(item);
  if (call_->task.motion != nullptr) {
    last_row_ = nullptr;
    return EndByMujoco(item, nullptr, 0);
  }
  const Operation& operation = *call_->task.operation;
  try {
    const mjModel& m = Enter(sim);
    if (!operation.resets) Load(m, FirstRow(sim));
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

// Runs a motion from this step on, at which the state is `row` (null: as it begins).
void DataWorker::EndByMujoco(int item, const double* row, int step) noexcept {
  step_ = step;
  try {
    const mjModel& m = Enter(id(item));
    Load(m, row != nullptr ? row : FirstRow(id(item)));
    MoveFrom(m, item, step);
  } catch (...) {
    Fail(item);
  }
}

void DataWorker::MoveFrom(const mjModel& m, int item, int step) {
  for (step_ = step; step_ < motion().num_steps; ++step_) {
    if (ShouldStop()) return;
    if (!motion().stops || !HasWarned()) Step(m, motion().control(item, step_));
    RecordStep(m, item, step_);
  }
  Trapped([&] { ComputeStages(m, *data_, motion().stage); });
  Save(m, item);
}

bool DataWorker::HasWarned() const {
  return std::any_of(std::begin(data_->warning), std::end(data_->warning),
                     [](const mjWarningStat& warning) { return warning.number != 0; });
}

void DataWorker::RecordStep(const mjModel& m, int item, int step) {
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

void DataWorker::FinishData() noexcept {
  if (last_row_ == nullptr) return;
  try {
    const mjModel& m = Enter(id(last_item_));
    Load(m, last_row_);
    for (int i = 0; i < last_steps_; ++i) Step(m, nullptr);
  } catch (...) {
    ResetData(last_item_);
  }
}

}  // namespace pyfastenv::physics
