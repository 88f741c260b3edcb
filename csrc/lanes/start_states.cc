#include "lanes/start_states.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lanes/own_numbers.h"
#include "mujoco/error_trap.h"

namespace pyfastenv::lanes {

namespace {

// long enough for a body that has been put on the ground to lie there
constexpr int kSettlingSteps = 40;

// A joint that carries a whole tree up and down, by the engine's last kinematics.
bool Lifts(const mjModel& m, const mjData& d, int joint) {
  if (m.body_parentid[m.jnt_bodyid[joint]] != 0) return false;
  return m.jnt_type[joint] == mjJNT_FREE ||
         (m.jnt_type[joint] == mjJNT_SLIDE && std::abs(d.xaxis[3 * joint + 2]) > 0.9);
}

}  // namespace

StartStates::StartStates(const mjModel& m, mjData& data, LaneStepper& lanes)
    : m_(m), data_(data), lanes_(lanes), ctrl_(lanes.plan().tables().row.ctrl) {
  const OwnNumbers numbers(m, lanes.plan(), lanes.width());
  Settle(numbers.from(0));
}

const char* StartStates::NameOf(const mjModel& m, Kind kind) {
  switch (kind) {
    case Kind::kNearDefault:
      return "near the default pose";
    case Kind::kKeyframe:
      return m.nkey > 0 ? "from a keyframe" : "far from the default pose";
    case Kind::kFast:
      return "at high speed";
    case Kind::kSaturated:
      return "under saturated controls";
    case Kind::kTouching:
      return "in contact";
    case Kind::kSettled:
      return "from a settled state";
    case Kind::kAtRest:
    case Kind::kCount:
      break;
  }
  return "from rest, with zeros of both signs and denormal numbers";
}

void StartStates::Draw(int i, double* row) {
  const int round = i / static_cast<int>(Kind::kCount);
  const Kind kind = KindOf(i);
  if (kind == Kind::kSettled) {
    const std::vector<double>& state = settled_[static_cast<size_t>(round) % settled_.size()];
    std::copy(state.begin(), state.end(), row);
    return;
  }
  Trapped([&] { mj_resetData(&m_, &data_); });
  switch (kind) {
    case Kind::kKeyframe:
      if (m_.nkey > 0) {
        const int key = round % static_cast<int>(m_.nkey);
        Trapped([&] { mj_resetDataKeyframe(&m_, &data_, key); });
        for (int k = 0; k < m_.nv; ++k) data_.qvel[k] += Uniform(0.1);
      } else {
        MoveNearDefault(1);
        DrawVelocities(3);
      }
      break;
    case Kind::kFast:
      MoveNearDefault(0.3);
      DrawVelocities(round % 2 == 0 ? 10 : 40);
      break;
    case Kind::kTouching:
      DrawPose();
      LowerToTouch();
      DrawVelocities(round % 2 == 0 ? 1 : 8);
      break;
    case Kind::kAtRest:
      PutAtRest();
      break;
    default:
      MoveNearDefault(0.3);
      DrawVelocities(1);
      for (int k = 0; k < m_.na; ++k) data_.act[k] = Uniform();
  }
  if (kind != Kind::kKeyframe) MoveMocap(0.1);
  mj_getState(&m_, &data_, row, mjSTATE_INTEGRATION);
}

void StartStates::DrawControls(int i, int step, double* row) {
  double* ctrl = row + ctrl_;
  const Kind kind = KindOf(i);
  if (kind == Kind::kSaturated && step > 0) return;  // held
  for (int a = 0; a < m_.nu; ++a) {
    const double bound = m_.actuator_ctrllimited[a] ? m_.actuator_ctrlrange[2 * a + 1] : 1;
    if (kind == Kind::kSaturated) {
      const double beyond = std::array{1.0, 1.5, 30.0}[static_cast<size_t>(Choose(3))];
      ctrl[a] = (Choose(2) == 0 ? bound : -bound) * beyond;
    } else if (kind == Kind::kAtRest && step < 5) {
      ctrl[a] = TinyOrZero();
    } else {
      ctrl[a] = bound * Uniform(1.2);
    }
  }
  const RowLayout& at = lanes_.plan().tables().row;
  for (int k = 0; k < 3 * m_.nmocap; ++k) row[at.mocap_pos + k] += Uniform(0.01);
  if (kind != Kind::kTouching || step % 4 != 2) return;
  const double weight = 2 * m_.body_subtreemass[0];
  row[at.qfrc_applied + Choose(static_cast<int>(m_.nv))] = Uniform(0.1 * weight);
  double* wrench = row + at.xfrc_applied + 6 * Choose(static_cast<int>(m_.nbody));
  for (int k = 0; k < 6; ++k) wrench[k] = Uniform(k < 3 ? weight : 0.1 * weight);
}

double StartStates::TinyOrZero() {
  constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
  constexpr double kDenormal = std::numeric_limits<double>::min() / 7;
  return std::array{0.0, -0.0, 0.0, -0.0, kSmallest, -kDenormal}[static_cast<size_t>(Choose(6))];
}

// By a step under random velocities: a turn stays a turn.
void StartStates::MoveNearDefault(double spread) {
  DrawVelocities(spread);
  mj_integratePos(&m_, data_.qpos, data_.qvel, 1);
}

void StartStates::DrawVelocities(double bound) {
  for (int k = 0; k < m_.nv; ++k) data_.qvel[k] = Uniform(bound);
}

// Quaternions need no length of 1.
void StartStates::MoveMocap(double bound) {
  for (int k = 0; k < 3 * m_.nmocap; ++k) data_.mocap_pos[k] += Uniform(bound);
  for (int k = 0; k < 4 * m_.nmocap; ++k) data_.mocap_quat[k] += Uniform(bound);
}

// Turned anyhow, with joints anywhere in their ranges and a little beyond.
void StartStates::DrawPose() {
  for (int k = 0; k < m_.nv; ++k) {
    const int joint = m_.dof_jntid[k], type = m_.jnt_type[joint];
    const bool translates =
        type == mjJNT_SLIDE || (type == mjJNT_FREE && k < m_.jnt_dofadr[joint] + 3);
    data_.qvel[k] = Uniform(translates ? 0.1 : 3);
  }
  mj_integratePos(&m_, data_.qpos, data_.qvel, 1);
  for (int j = 0; j < m_.njnt; ++j) {
    const bool scalar = m_.jnt_type[j] == mjJNT_HINGE || m_.jnt_type[j] == mjJNT_SLIDE;
    if (!scalar || !m_.jnt_limited[j]) continue;
    const double low = m_.jnt_range[2 * j], high = m_.jnt_range[2 * j + 1];
    data_.qpos[m_.jnt_qposadr[j]] = 0.5 * (low + high) + 0.5 * (high - low) * Uniform(1.05);
  }
}

// Nothing moves, and some of what is zero is a negative zero or as good as zero.
void StartStates::PutAtRest() {
  for (int k = 0; k < m_.nv; ++k) {
    data_.qvel[k] = TinyOrZero();
    data_.qacc_warmstart[k] = std::abs(TinyOrZero());  // lanes leave -0 there to mj_step
  }
  for (int k = 0; k < m_.na; ++k) data_.act[k] = TinyOrZero();
  for (int j = 0; j < m_.njnt; ++j) {
    const bool scalar = m_.jnt_type[j] == mjJNT_HINGE || m_.jnt_type[j] == mjJNT_SLIDE;
    double& position = data_.qpos[m_.jnt_qposadr[j]];
    if (scalar && position == 0) position = TinyOrZero();
  }
}

// Moves trees that can be moved up and down until one is on the ground, a little in it.
void StartStates::LowerToTouch() {
  if ((m_.opt.disableflags & (mjDSBL_CONTACT | mjDSBL_CONSTRAINT)) != 0) return;
  constexpr int kMostMoves = 8, kHalvings = 6;
  double step = m_.stat.extent / kMostMoves;
  const bool below = TouchesGround();
  for (int k = 0; k < kMostMoves; ++k) {
    Lift(below ? step : -step);
    if (TouchesGround() != below) break;
    if (k + 1 == kMostMoves) return;  // there is no ground
  }
  bool touches = !below;
  for (int k = 0; k < kHalvings; ++k) {
    step /= 2;
    Lift(touches ? step : -step);
    touches = TouchesGround();
  }
  if (!touches) Lift(-step);
}

void StartStates::Lift(double height) {
  for (int j = 0; j < m_.njnt; ++j) {
    if (!Lifts(m_, data_, j)) continue;
    const bool free = m_.jnt_type[j] == mjJNT_FREE;
    data_.qpos[m_.jnt_qposadr[j] + (free ? 2 : 0)] +=
        free || data_.xaxis[3 * j + 2] > 0 ? height : -height;
  }
}

bool StartStates::TouchesGround() {
  Trapped([&] {
    mj_kinematics(&m_, &data_);
    mj_comPos(&m_, &data_);
    mj_collision(&m_, &data_);
  });
  return std::any_of(data_.contact, data_.contact + data_.ncon, [&](const mjContact& contact) {
    const auto is_fixed = [&](int geom) {
      return geom >= 0 && m_.body_weldid[m_.geom_bodyid[geom]] == 0;
    };
    return is_fixed(contact.geom[0]) || is_fixed(contact.geom[1]);
  });
}

void StartStates::Settle(const double* const* numbers) {
  const auto size = static_cast<size_t>(lanes_.plan().tables().row.size);
  const int width = lanes_.width();
  settled_.assign(static_cast<size_t>(width), std::vector<double>(size));
  std::vector<const double*> from;
  std::vector<double*> to;
  for (std::vector<double>& state : settled_) {
    Trapped([&] { mj_resetData(&m_, &data_); });
    if (to.size() % 2 == 1) DrawPose();
    LowerToTouch();
    mju_zero(data_.qvel, static_cast<int>(m_.nv));
    mj_getState(&m_, &data_, state.data(), mjSTATE_INTEGRATION);
    from.push_back(state.data());
    to.push_back(state.data());
  }
  // what lanes leave to mj_step has at least been put there
  lanes_.Step(from.data(), to.data(), width, kSettlingSteps, false, numbers);
}

}  // namespace pyfastenv::lanes
