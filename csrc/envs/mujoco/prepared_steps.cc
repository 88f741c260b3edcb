#include "envs/mujoco/prepared_steps.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lanes/contacts.h"
#include "lanes/number_access.h"
#include "lanes/sensors.h"

namespace pyfastenv {

namespace {

bool SameBits(const double* a, const double* b, size_t size) {
  return std::memcmp(a, b, size * sizeof(double)) == 0;
}

// Whether something is read that only lanes' stages leave behind in a step.
bool NeedsKeeping(const LaneReads& reads) {
  using lanes::Sensors;
  if (reads.sensors != Sensors::kNone && reads.sensors != Sensors::kOfMotion) return true;
  return std::any_of(reads.fields.begin(), reads.fields.end(), [&](lanes::Field field) {
    return lanes::LaneStepper::NeedsKeeping(field) &&
           !(reads.refreshed && lanes::IsRefreshed(field));
  });
}

LaneReads WithoutMissingSensors(LaneReads reads, const mjModel& model) {
  if (!lanes::HasSensors(model, reads.sensors)) reads.sensors = lanes::Sensors::kNone;
  return reads;
}

}  // namespace

PreparedSteps::PreparedSteps(const LanePlans& plans, const mjModel& model, int state_size,
                             int frame_skip, int control_every, LaneReads reads,
                             const std::vector<int>& field_offsets, size_t num_written)
    : reads_(WithoutMissingSensors(std::move(reads), model)),
      frame_skip_(frame_skip),
      control_every_(control_every),
      keeps_fields_(NeedsKeeping(reads_)),
      layout_(plans.plans[0]->tables().row),
      num_positions_(static_cast<size_t>(plans.plans[0]->tables().nq)),
      num_velocities_(static_cast<size_t>(plans.plans[0]->tables().nv)),
      num_activations_(static_cast<size_t>(plans.plans[0]->tables().na)),
      num_controls_(static_cast<size_t>(plans.plans[0]->tables().nu)) {
  for (const auto& plan : plans.plans) {
    steppers_.push_back(std::make_unique<lanes::LaneStepper>(plan));
  }
  const lanes::Plan& plan = *plans.plans[0];
  size_t num_numbers = 0;
  for (size_t k = 0; k < field_offsets.size(); ++k) {
    const int size = lanes::CountOf(plan.tables(), plan.fields()[k]);
    fields_.push_back({field_offsets[k], static_cast<size_t>(size)});
    num_numbers += fields_.back().size;
    if (k < num_written) num_written_ = num_numbers;
  }
  steps_.resize(static_cast<size_t>(steppers_.back()->width()));
  numbers_.reserve(steps_.size() * fields_.size());
  for (Step& step : steps_) {
    step.before.resize(static_cast<size_t>(state_size));
    step.after.resize(static_cast<size_t>(state_size));
    step.numbers.resize(num_numbers);
    step.between.resize(static_cast<size_t>((frame_skip - 1) / control_every), step.before);
  }
}

double* PreparedSteps::Add(const double* row) {
  Step& step = steps_[count_++];
  step.row = row;
  std::copy_n(row, step.before.size(), step.before.data());
  double* numbers = step.numbers.data();
  for (const OwnField& field : fields_) {
    numbers = std::copy_n(row + field.offset, field.size, numbers);
  }
  return step.before.data() + layout_.ctrl;
}

void PreparedSteps::Run(const Control& control) {
  if (count_ == 0) return;
  if (!misses_.Tries(static_cast<int>(count_))) {
    for (size_t i = 0; i < count_; ++i) steps_[i].stepper = nullptr;
    return;
  }
  const auto wide_enough = [this](const auto& stepper) {
    return stepper->width() >= static_cast<int>(count_);
  };
  lanes::LaneStepper& stepper = **std::find_if(steppers_.begin(), steppers_.end(), wide_enough);
  const double* rows[lanes::kMaxWidth];
  double* new_rows[lanes::kMaxWidth];
  numbers_.clear();
  for (size_t i = 0; i < count_; ++i) {
    const double* numbers = steps_[i].numbers.data();
    for (const OwnField& field : fields_) {
      numbers_.push_back(numbers);
      numbers += field.size;
    }
  }
  unsigned redo = 0;
  const size_t num_between = steps_[0].between.size();
  for (size_t k = 0; k <= num_between; ++k) {
    const bool last = k == num_between;
    for (size_t i = 0; i < count_; ++i) {
      Step& step = steps_[i];
      const std::vector<double>& from = k == 0 ? step.before : step.between[k - 1];
      std::vector<double>& to = last ? step.after : step.between[k];
      to = from;
      rows[i] = from.data();
      new_rows[i] = to.data();
    }
    const int done = static_cast<int>(k) * control_every_;
    const int num_steps = std::min(control_every_, frame_skip_ - done);
    redo |= stepper.Step(rows, new_rows, static_cast<int>(count_), num_steps, last && keeps_fields_,
                         numbers_.data());
    for (size_t i = 0; i < count_ && !last; ++i) {
      if ((redo >> i & 1) == 0) control(i, new_rows[i], new_rows[i] + layout_.ctrl);
    }
  }
  if (reads_.Has(lanes::Field::cfrc_ext)) stepper.ComputeExternalForces();
  if (reads_.refreshed) stepper.Refresh();
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
    return same && SameNumbers(step, row) && step.stepper != nullptr ? &step : nullptr;
  }
  return nullptr;
}

bool PreparedSteps::SameNumbers(const Step& step, const double* row) const {
  const double* numbers = step.numbers.data();
  return std::all_of(fields_.begin(), fields_.end(), [&](const OwnField& field) {
    const bool same = SameBits(row + field.offset, numbers, field.size);
    numbers += field.size;
    return same;
  });
}

bool PreparedSteps::IsFor(const Step& step, const mjData& data, const double* written) const {
  const lanes::RowLayout& at = layout_;
  const double* before = step.before.data();
  return SameBits(&data.time, before + at.time, 1) &&
         SameBits(data.qpos, before + at.qpos, num_positions_) &&
         SameBits(data.qvel, before + at.qvel, num_velocities_) &&
         SameBits(data.act, before + at.act, num_activations_) &&
         SameBits(data.ctrl, before + at.ctrl, num_controls_) &&
         (num_written_ == 0 || SameBits(written, step.numbers.data(), num_written_));
}

void PreparedSteps::Read(const Step& step, const mjModel& model, mjData& data) const {
  for (const lanes::Field field : reads_.fields) step.stepper->Read(field, step.lane, data);
  if (reads_.contacts) lanes::WriteContacts(*step.stepper, step.lane, model, data);
}

void PreparedSteps::ReadSensors(const Step& step, const mjModel& model, mjData& data) const {
  lanes::ComputeSensors(*step.stepper, step.lane, model, data, reads_.sensors);
}

}  // namespace pyfastenv
