#include "lanes/lane_stepper.h"

#include <algorithm>
#include <cstdint>
#include <new>

#include "lanes/number_access.h"

namespace pyfastenv::lanes {

LaneStepper::LaneStepper(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)), tables_(plan_->tables()), kernels_(plan_->kernels()) {
  constexpr size_t kAlignment = 64;
  // zeroed, and most of it never touched: room for the worst case that a step may meet
  memory_.reset(std::calloc(kernels_.scratch_bytes(tables_) + kAlignment, 1));
  if (memory_ == nullptr) throw std::bad_alloc();
  const auto address = reinterpret_cast<uintptr_t>(memory_.get());
  const size_t padding = (kAlignment - address % kAlignment) % kAlignment;
  NarrowPhaseCall narrow_phase{};
  if (plan_->kept_model() != nullptr) {
    narrow_phase_ = std::make_unique<NarrowPhase>(plan_->kept_model(), tables_);
    narrow_phase = narrow_phase_->call();
  }
  ConstraintCall constraints{};
  if (tables_.asks_for_constraints) {
    constraints_ = std::make_unique<ConstraintSolver>(plan_->kept_model(), *this);
    constraints = constraints_->call();
  }
  scratch_ = kernels_.make_scratch(tables_, static_cast<char*>(memory_.get()) + padding,
                                   narrow_phase, constraints);
  numbers_.resize(static_cast<size_t>(width()), tables_.numbers);
  if (tables_.varied != 0) derived_.resize(numbers_.size() * Derivation::Size(tables_));
}

// Returns lanes whose numbers are not of the plan's kind; they take the model's.
unsigned LaneStepper::SetNumbers(const double* const* numbers, int count) {
  unsigned unusual = 0;
  double* derived = derived_.data();
  for (int l = 0; l < count; ++l, derived += Derivation::Size(tables_)) {
    Numbers& own = numbers_[static_cast<size_t>(l)];
    own = tables_.numbers;
    for (const Number field : plan_->fields()) Set(own, field, *numbers++);
    if (plan_->derivation().IsUsual(tables_, own)) {
      plan_->derivation().Run(tables_, tables_.varied, own, derived);
    } else {
      unusual |= 1u << l;
      own = tables_.numbers;
    }
  }
  for (auto l = static_cast<size_t>(count); l < numbers_.size(); ++l) numbers_[l] = numbers_[0];
  return unusual;
}

// Returns the lanes that must be redone from the beginning; lanes that nobody asked for repeat the
// first row, to no avail.
unsigned LaneStepper::Load(const double* const* rows, int count, const double* const* numbers) {
  const double* all[kMaxWidth];
  for (int l = 0; l < kernels_.width; ++l) all[l] = rows[l < count ? l : 0];
  const bool fresh = tables_.varied != 0 && numbers != nullptr;
  if (fresh) unusual_ = SetNumbers(numbers, count);
  kernels_.load(tables_, scratch_, all, count, fresh ? numbers_.data() : nullptr);
  if (narrow_phase_ != nullptr) narrow_phase_->Begin();
  return CollisionsAreMujocos() ? unusual_ : ~0u;  // they may be replaced at any time
}

unsigned LaneStepper::Step(const double* const* rows, double* const* new_rows, int count,
                           int num_steps, bool keep_fields, const double* const* numbers,
                           bool sensors) {
  const unsigned unusual = Load(rows, count, numbers);
  const unsigned asked = (1u << count) - 1;
  const unsigned redo =
      (kernels_.step(tables_, scratch_, num_steps, keep_fields, sensors) | unusual) & asked;
  for (int l = 0; l < count; ++l) {
    if ((redo >> l & 1) == 0) kernels_.store(tables_, scratch_, l, new_rows[l]);
  }
  return redo;
}

unsigned LaneStepper::Forward(const double* const* rows, int count, const double* const* numbers) {
  const unsigned unusual = Load(rows, count, numbers);
  return (kernels_.forward(tables_, scratch_) | unusual) & ((1u << count) - 1);
}

void LaneStepper::ComputeExternalForces() { kernels_.external_forces(tables_, scratch_); }

void LaneStepper::Read(Field field, int lane, double* out) const {
  kernels_.read(tables_, scratch_, field, lane, out);
}

void LaneStepper::Read(Field field, int lane, mjData& data) const {
  // generic, since a MuJoCo that is older than lanes, and has no plan, has no mjData::M
  const auto read_into = [&](auto& d) {
    switch (field) {
#define PYFASTENV_LANES_FIELD(name, entries, numbers)              \
  case Field::name:                                                \
    if constexpr (requires { d.name; }) Read(field, lane, d.name); \
    break;
      PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
    }
  };
  read_into(data);
}

void LaneStepper::ReadEvaluated(int lane, mjData& data) const {
  kernels_.read_evaluated(tables_, scratch_, lane, &data.time, data.qpos, data.qvel);
}

bool LaneStepper::NeedsKeeping(Field field) {
  switch (field) {
    case Field::qpos:
    case Field::qvel:
    case Field::act:
    case Field::act_dot:
    case Field::qacc_warmstart:
    case Field::ctrl:
    case Field::qfrc_applied:
    case Field::xfrc_applied:
    case Field::qfrc_smooth:
    case Field::qacc_smooth:
    case Field::qfrc_constraint:
    case Field::qacc:
    case Field::cfrc_ext:
      return false;
    default:
      return true;
  }
}

int LaneStepper::Size(Field field) const {
  switch (field) {
#define PYFASTENV_LANES_FIELD(name, entries, numbers) \
  case Field::name:                                   \
    return tables_.entries * (numbers);
    PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
  }
  return 0;
}

const char* LaneStepper::Name(Field field) {
  switch (field) {
#define PYFASTENV_LANES_FIELD(name, entries, numbers) \
  case Field::name:                                   \
    return #name;
    PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
  }
  return "";
}

int LaneStepper::CountContacts(int lane) const { return kernels_.count_contacts(scratch_, lane); }

ContactView LaneStepper::Contact(int index, int lane) const {
  return kernels_.contact(scratch_, index, lane);
}

int LaneStepper::CountRows(int lane) const { return kernels_.count_rows(scratch_, lane); }

RowView LaneStepper::Row(int index, int lane) const {
  return kernels_.row(tables_, scratch_, index, lane);
}

}  // namespace pyfastenv::lanes
