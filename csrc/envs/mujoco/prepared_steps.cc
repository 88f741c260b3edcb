#include "envs/mujoco/prepared_steps.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lanes/contacts.h"
#include "lanes/number_access.h"
#include "lanes/sensors.h"
#include "mujoco/owned.h"

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
                             int frame_skip, int control_every, size_t num_mocap, LaneReads reads,
                             const std::vector<int>& field_offsets, size_t num_written)
    : reads_(WithoutMissingSensors(std::move(reads), model)),
      frame_skip_(frame_skip),
      control_every_(control_every),
      num_mocap_(num_mocap),
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
  return step.before.data();
}

int PreparedSteps::Run(const Control& control) {
  if (count_ == 0) return 0;
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
      if ((redo >> i & 1) == 0) control(i, new_rows[i], new_rows[i]);
    }
  }
  if (reads_.Has(lanes::Field::cfrc_ext)) stepper.ComputeExternalForces();
  if (reads_.refreshed) stepper.Refresh();
  for (size_t i = 0; i < count_; ++i) {
    Step& step = steps_[i];
    step.stepper = (redo >> i & 1) != 0 ? nullptr : &stepper;
    step.lane = static_cast<int>(i);
    DisturbIfAsked(step.after[static_cast<size_t>(layout_.qvel)]);
  }
  return std::popcount(redo);
}

const PreparedSteps::Step* PreparedSteps::Find(const double* row) const {
  for (size_t i = 0; i < count_; ++i) {
    const Step& step = steps_[i];
    if (step.row != row) continue;
    const auto control = static_cast<size_t>(layout_.ctrl);
    const size_t forces = control + num_controls_;
    const auto mocap = static_cast<size_t>(layout_.mocap_pos);
    const size_t rest = mocap + 7 * num_mocap_;
    const double* before = step.before.data();
    const bool same = SameBits(row, before, control) &&
                      SameBits(row + forces, before + forces, mocap - forces) &&
                      SameBits(row + rest, before + rest, step.before.size() - rest);
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
         SameBits(data.mocap_pos, before + at.mocap_pos, 3 * num_mocap_) &&
         SameBits(data.mocap_quat, before + at.mocap_quat, 4 * num_mocap_) &&
         (num_written_ == 0 || SameBits(written, step.numbers.data(), num_written_));
}

bool PreparedSteps::BeganWith(const Step& step, const std::vector<double>& state) {
  return SameBits(state.data(), step.before.data(), step.before.size());
}

bool PreparedSteps::HasControl(const std::vector<double>& state, const double* control) const {
  const double* mocap = control + num_controls_;
  return SameBits(control, state.data() + layout_.ctrl, num_controls_) &&
         SameBits(mocap, state.data() + layout_.mocap_pos, 7 * num_mocap_);
}

void PreparedSteps::CopyControl(const double* state, mjData& data) const {
  std::copy_n(state + layout_.ctrl, num_controls_, data.ctrl);
  std::copy_n(state + layout_.mocap_pos, 3 * num_mocap_, data.mocap_pos);
  std::copy_n(state + layout_.mocap_quat, 4 * num_mocap_, data.mocap_quat);
}

// The controls under which a substep runs.
const double* PreparedSteps::ControlAt(const Step& step, int substep) const {
  const auto asked = static_cast<size_t>(substep / control_every_);
  return (asked == 0 ? step.before : step.between[asked - 1]).data() + layout_.ctrl;
}

std::string PreparedSteps::FindDifference(const Step& step, const mjModel& model,
                                          const mjData& data, const double* theirs) const {
  // what lanes write of a row ends where the controls begin
  if (const auto at_end = lanes::FindDifference(step.after.data(), theirs, layout_.ctrl)) {
    try {
      return Locate(step, model, *at_end);
    } catch (const MujocoError&) {
      return lanes::Describe(model, step.stepper->width(), "the end of an environment's step",
                             *at_end);
    }
  }
  for (const lanes::Field field : reads_.fields) {
    if (reads_.refreshed && lanes::IsRefreshed(field)) continue;  // of another state than mj_step's
    if (const auto found = lanes::FindDifference(*step.stepper, step.lane, field, data)) {
      const std::string name =
          std::string(lanes::LaneStepper::Name(field)) + "[" + std::to_string(found->index) + "]";
      return lanes::Describe(model, step.stepper->width(), "the end of an environment's step",
                             *found, name);
    }
  }
  return {};
}

// Runs it once more, substep by substep: the first one that differs tells more than the last.
std::string PreparedSteps::Locate(const Step& step, const mjModel& model,
                                  const lanes::Difference& at_end) const {
  const int width = step.stepper->width();
  const std::string of = " of an environment's step of " + std::to_string(frame_skip_);
  const DataPointer data = MakeData(model);
  const auto plan = std::find_if(steppers_.begin(), steppers_.end(),
                                 [&](const auto& s) { return s.get() == step.stepper; });
  lanes::LaneStepper& stepper = **plan;
  std::vector<const double*> numbers;
  const double* number = step.numbers.data();
  for (const OwnField& field : fields_) {
    numbers.push_back(number);
    number += field.size;
  }
  std::vector<double> ours = step.before, reference = step.before;
  for (int substep = 0; substep < frame_skip_; ++substep) {
    for (std::vector<double>* row : {&ours, &reference}) {
      std::copy_n(ControlAt(step, substep), num_controls_, row->data() + layout_.ctrl);
    }
    const double* from = ours.data();
    double* to = ours.data();
    const bool keep_fields = keeps_fields_ && substep + 1 == frame_skip_;
    if (stepper.Step(&from, &to, 1, 1, keep_fields, numbers.data()) != 0) break;
    DisturbIfAsked(to[layout_.qvel]);
    mj_setState(&model, data.get(), reference.data(), mjSTATE_INTEGRATION);
    Trapped([&] { mj_step(&model, data.get()); });
    mj_getState(&model, data.get(), reference.data(), mjSTATE_INTEGRATION);
    if (const auto first = lanes::FindDifference(ours.data(), reference.data(), layout_.ctrl)) {
      return lanes::Describe(model, width, "substep " + std::to_string(substep + 1) + of, *first);
    }
  }
  return lanes::Describe(model, width, "the end" + of, at_end);
}

void PreparedSteps::Read(const Step& step, const mjModel& model, mjData& data) const {
  for (const lanes::Field field : reads_.fields) step.stepper->Read(field, step.lane, data);
  if (reads_.contacts) lanes::WriteContacts(*step.stepper, step.lane, model, data);
}

void PreparedSteps::ReadSensors(const Step& step, const mjModel& model, mjData& data) const {
  lanes::ComputeSensors(*step.stepper, step.lane, model, data, reads_.sensors);
}

}  // namespace pyfastenv
