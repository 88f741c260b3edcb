#include "envs/mujoco/prepared_steps.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace pyfastenv {

namespace {

bool SameBits(const double* a, const double* b, size_t size) {
  return std::memcmp(a, b, size * sizeof(double)) == 0;
}

}  // namespace

PreparedSteps::PreparedSteps(const LanePlans& plans, int state_size, int frame_skip,
                             std::vector<lanes::Field> reads)
    : reads_(std::move(reads)),
      frame_skip_(frame_skip),
      reads_external_forces_(std::find(reads_.begin(), reads_.end(), lanes::Field::cfrc_ext) !=
                             reads_.end()),
      keeps_fields_(std::any_of(reads_.begin(), reads_.end(), lanes::LaneStepper::NeedsKeeping)),
      layout_(plans.plans[0]->tables().row),
      num_positions_(static_cast<size_t>(plans.plans[0]->tables().nq)),
      num_velocities_(static_cast<size_t>(plans.plans[0]->tables().nv)),
      num_controls_(static_cast<size_t>(plans.plans[0]->tables().nu)) {
  for (const auto& plan : plans.plans) {
    steppers_.push_back(std::make_unique<lanes::LaneStepper>(plan));
  }
  steps_.resize(static_cast<size_t>(steppers_.back()->width()));
  for (Step& step : steps_) {
    step.before.resize(static_cast<size_t>(state_size));
    step.after.resize(static_cast<size_t>(state_size));
  }
}

double* PreparedSteps::Add(const double* row) {
  Step& step = steps_[count_++];
  step.row = row;
  std::copy_n(row, step.before.size(), step.before.data());
  return step.before.data() + layout_.ctrl;
}

void PreparedSteps::Run() {
  if (count_ == 0) return;
  if (!misses_.Tries(static_cast<int>(count_))) return Clear();
  const auto wide_enough = [this](const auto& stepper) {
    return stepper->width() >= static_cast<int>(count_);
  };
  lanes::LaneStepper& stepper = **std::find_if(steppers_.begin(), steppers_.end(), wide_enough);
  const double* rows[lanes::kMaxWidth];
  double* new_rows[lanes::kMaxWidth];
  for (size_t i = 0; i < count_; ++i) {
    Step& step = steps_[i];
    step.after = step.before;
    rows[i] = step.before.data();
    new_rows[i] = step.after.data();
  }
  const unsigned redo =
      stepper.Step(rows, new_rows, static_cast<int>(count_), frame_skip_, keeps_fields_);
  if (reads_external_forces_) stepper.ComputeExternalForces();
  misses_.Count(static_cast<int>(count_), std::popcount(redo));
  for (size_t i = 0; i < count_; ++i) {
    steps_[i].stepper = (redo >> i & 1) != 0 ? nullptr : &stepper;
    steps_[i].lane = static_cast<int>(i);
  }
}

const PreparedSteps::Step* PreparedSteps::Find(const double* row) const {
  for (size_t i = 0; i < count_; ++i) {
    const Step& step = steps_[i];
    if (step.row != row) continue;
    const auto control = static_cast<size_t>(layout_.ctrl);
    const size_t rest = control + num_controls_;
    const bool same = SameBits(row, step.before.data(), control) &&
                      SameBits(row + rest, step.before.data() + rest, step.before.size() - rest);
    return same && step.stepper != nullptr ? &step : nullptr;
  }
  return nullptr;
}

bool PreparedSteps::IsFor(const Step& step, const mjData& data) const {
  const lanes::RowLayout& at = layout_;
  const double* before = step.before.data();
  return SameBits(&data.time, before + at.time, 1) &&
         SameBits(data.qpos, before + at.qpos, num_positions_) &&
         SameBits(data.qvel, before + at.qvel, num_velocities_) &&
         SameBits(data.ctrl, before + at.ctrl, num_controls_);
}

void PreparedSteps::Read(const Step& step, mjData& data) const {
  for (const lanes::Field field : reads_) step.stepper->Read(field, step.lane, data);
}

}  // namespace pyfastenv
