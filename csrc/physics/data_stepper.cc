#include "physics/data_stepper.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "mujoco/error_trap.h"

namespace pyfastenv::physics {

void DataStepper::ClearInputs(const mjModel& m) {
  const unsigned spec = request_.control_spec;
  if ((spec & mjSTATE_CTRL) == 0) mju_zero(data_.ctrl, static_cast<int>(m.nu));
  if ((spec & mjSTATE_QFRC_APPLIED) == 0) mju_zero(data_.qfrc_applied, static_cast<int>(m.nv));
  if ((spec & mjSTATE_XFRC_APPLIED) == 0) {
    mju_zero(data_.xfrc_applied, 6 * static_cast<int>(m.nbody));
  }
  for (int i = 0; i < m.nbody; ++i) {
    const int mocap = m.body_mocapid[i];
    if (mocap < 0) continue;
    if ((spec & mjSTATE_MOCAP_POS) == 0) mju_copy3(data_.mocap_pos + 3 * mocap, m.body_pos + 3 * i);
    if ((spec & mjSTATE_MOCAP_QUAT) == 0) {
      mju_copy4(data_.mocap_quat + 4 * mocap, m.body_quat + 4 * i);
    }
  }
  if ((spec & mjSTATE_EQ_ACTIVE) == 0) std::copy_n(m.eq_active0, m.neq, data_.eq_active);
}

void DataStepper::ClearWarnings() {
  for (mjWarningStat& warning : data_.warning) warning.number = 0;
}

void DataStepper::Start(int rollout) {
  const mjModel& m = request_.model(rollout);
  ClearInputs(m);
  Trapped([&] { mj_setState(&m, &data_, request_.initial_state(rollout), mjSTATE_FULLPHYSICS); });
  const int nv = static_cast<int>(m.nv);
  if (const double* warmstart = request_.warmstart(rollout); warmstart != nullptr) {
    mju_copy(data_.qacc_warmstart, warmstart, nv);
  } else {
    mju_zero(data_.qacc_warmstart, nv);
  }
  ClearWarnings();
}

void DataStepper::StartAt(const mjModel& m, const double* row) {
  Trapped([&] { mj_setState(&m, &data_, row, mjSTATE_INTEGRATION); });
  ClearWarnings();
}

void DataStepper::Step(const mjModel& m, const double* control) {
  try {
    Trapped([&] {
      if (control != nullptr) {
        mj_setState(&m, &data_, control, static_cast<int>(request_.control_spec));
      }
      mj_step(&m, &data_);
    });
  } catch (const MujocoError&) {
    const std::string said = request_.take_callback_error();
    if (said.empty()) throw;
    throw MujocoError(said);
  }
}

bool DataStepper::Warned() const {
  return std::any_of(std::begin(data_.warning), std::end(data_.warning),
                     [](const mjWarningStat& warning) { return warning.number != 0; });
}

void DataStepper::Write(int rollout, int step) const {
  if (double* state = request_.state(rollout, step); state != nullptr) {
    const mjModel& m = request_.model(rollout);
    Trapped([&] { mj_getState(&m, &data_, state, mjSTATE_FULLPHYSICS); });
  }
  if (double* sensors = request_.sensors(rollout, step); sensors != nullptr) {
    std::copy_n(data_.sensordata, request_.sensor_size, sensors);
  }
}

void DataStepper::WriteFrom(int rollout, int step) const {
  for (; step < request_.num_steps; ++step) Write(rollout, step);
}

void DataStepper::Fail(int rollout, int step) noexcept {
  const auto steps = static_cast<size_t>(request_.num_steps - step);
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (double* states = request_.state(rollout, step); states != nullptr) {
    std::fill_n(states, steps * request_.state_size, kUnknown);
  }
  if (double* sensors = request_.sensors(rollout, step); sensors != nullptr) {
    std::fill_n(sensors, steps * request_.sensor_size, kUnknown);
  }
  try {
    Trapped([&] { mj_resetData(&request_.model(rollout), &data_); });
  } catch (...) {
    return;  // the next rollout will say what is wrong
  }
}

}  // namespace pyfastenv::physics
