// Actuators' forces and the acceleration without constraints: mj_transmission, mj_fwdActuation,
// mj_fwdAcceleration.
#include "lanes/stages/blas.h"
#include "lanes/stages/muscles.h"
#include "lanes/stages/site_actuators.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"
#include "lanes/stages/tendon_forces.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// The axis that an actuator turns a rotation about, whose quaternion is at `qpos`.
void TurnedGear(const Actuator& actuator, const Scratch& s, int qpos, const Lane* gear,
                Lane* axis) {
  Lane back[4];
  for (int i = 0; i < 4; ++i) back[i] = s.qpos[qpos + i];
  Normalize4(back);
  for (int i = 1; i < 4; ++i) back[i] = -back[i];
  if (actuator.in_parent) return RotateExactlyByQuat(axis, gear, back);
  for (int i = 0; i < 3; ++i) axis[i] = gear[i];
}

// Length and moments.
void Transmit(const Tables& t, Scratch& s, int a) {
  const Actuator& actuator = t.actuator[a];
  const Lane gear = s.actuator_gear[kGear * a];
  Lane* moment = s.actuator_moment + t.moment.rowadr[a];
  if (actuator.transmission == Transmission::kJoint) {
    s.actuator_length[a] = s.qpos[actuator.target] * gear;
    moment[0] = gear;
    return;
  }
  if (actuator.transmission == Transmission::kFreeJoint) {
    s.actuator_length[a] = Splat(0);
    for (int k = 0; k < 3; ++k) moment[k] = s.actuator_gear[kGear * a + k];
    TurnedGear(actuator, s, actuator.target + 3, s.actuator_gear + kGear * a + 3, moment + 3);
    return;
  }
  if (actuator.transmission == Transmission::kBall) {
    TurnedGear(actuator, s, actuator.target, s.actuator_gear + kGear * a, moment);
    s.actuator_length[a] = Dot3(s.ball_turn + 3 * actuator.ball, moment);
    return;
  }
  if (actuator.transmission == Transmission::kSite) return TransmitSite(t, s, a);
  s.actuator_length[a] = s.ten_length[actuator.target] * gear;
  const Lane* J = s.ten_J + t.ten_J.rowadr[actuator.target];
  for (int k = 0; k < t.moment.rownnz[a]; ++k) moment[k] = J[k] * gear;
}

Lane Affine(const Scratch& s, int a, const Lane* parameters) {
  return parameters[0] + parameters[1] * s.actuator_length[a] +
         parameters[2] * s.actuator_velocity[a];
}

Lane Gain(const Actuator& actuator, const Scratch& s, int a, const Lane* parameters) {
  if (actuator.gain == ForceLaw::kMuscle) {
    return MuscleGain(actuator.muscle, s.actuator_length[a], s.actuator_velocity[a], parameters);
  }
  return actuator.gain == ForceLaw::kAffine ? Affine(s, a, parameters) : parameters[0];
}

Lane Bias(const Actuator& actuator, const Scratch& s, int a, const Lane* parameters) {
  if (actuator.bias == ForceLaw::kMuscle) {
    return MuscleBias(actuator.muscle, s.actuator_length[a], parameters);
  }
  return actuator.bias == ForceLaw::kAffine ? Affine(s, a, parameters) : Splat(0);
}

Lane Force(const Tables& t, const Scratch& s, int a) {
  const Actuator& actuator = t.actuator[a];
  const Lane* gain = s.actuator_gainprm + kGainParameters * a;
  const Lane* bias = s.actuator_biasprm + kBiasParameters * a;
  const Lane force = Gain(actuator, s, a, gain) * ActuatorInput(t, actuator, s, a);
  return force + Bias(actuator, s, a, bias);
}

// Scales the forces of the actuators of each tendon down to the bounds on their sum.
void LimitTendonForces(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.ntendon; ++i) {
    const Tendon& tendon = t.tendon[i];
    if (!tendon.limits_force) continue;
    const Lane sum = SumOfTendonForces(t, s, i);
    const Lane low = Splat(tendon.force_range[0]), high = Splat(tendon.force_range[1]);
    const Lane bounded = WhereLess(sum, low, low / sum, WhereLess(high, sum, high / sum, Splat(1)));
    const Lane scale = WhereLess(Splat(0), Abs(sum), bounded, Splat(1));
    for (int a = 0; a < t.nu; ++a) {
      if (PullsAt(t.actuator[a], i)) s.actuator_force[a] = s.actuator_force[a] * scale;
    }
  }
}

}  // namespace

void Actuation(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.qfrc_actuator[i] = Splat(0);
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    Transmit(t, s, a);
    const int adr = t.moment.rowadr[a], count = t.moment.rownnz[a];
    const int* dof = t.moment.colind + adr;
    const Lane* moment = s.actuator_moment + adr;
    if (!t.actuation) {
      s.actuator_velocity[a] = s.actuator_force[a] = Splat(0);
      continue;
    }
    s.actuator_velocity[a] = DotSparse(moment, s.qvel, dof, count);
#ifndef PYFASTENV_RECORD
    if (actuator.transmission == Transmission::kSite) LeaveOutZeros(t, s, a);
#endif
    s.actuator_force[a] = actuator.disabled ? Splat(0) : Force(t, s, a);
  }
  if (!t.actuation) return;
  LimitTendonForces(t, s);
  for (int a = 0; a < t.nu; ++a) {
    Lane& force = s.actuator_force[a];
    const Lane* range = s.actuator_forcerange + 2 * a;
    if (t.actuator[a].clamp_force) force = Clip(force, range[0], range[1]);
    const int adr = t.moment.rowadr[a];
    for (int k = adr; k < adr + t.moment.rownnz[a]; ++k) {
      const int dof = t.moment.colind[k];
      s.qfrc_actuator[dof] = s.qfrc_actuator[dof] + s.actuator_moment[k] * force;
    }
  }
  for (int i = 0; i < t.nv && t.nu > 0; ++i) {
    const Joint& joint = t.joint[t.dof[i].joint];
    if (joint.act_gravcomp) s.qfrc_actuator[i] = s.qfrc_actuator[i] + s.qfrc_gravcomp[i];
  }
  for (int k = 0; k < t.num_force_limits; ++k) {
    const ForceLimit& limit = t.force_limit[k];
    const Lane* range = s.jnt_actfrcrange + 2 * limit.joint;
    s.qfrc_actuator[limit.dof] = Clip(s.qfrc_actuator[limit.dof], range[0], range[1]);
  }
}

void SmoothAcceleration(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) {
    // the zero is qfrc_applied; AddAppliedForces
    s.qfrc_smooth[i] = PlusZero(s.qfrc_passive[i] - s.qfrc_bias[i]) + s.qfrc_actuator[i];
    s.qacc_smooth[i] = s.qfrc_smooth[i];
  }
  SolveFactored(t, s.qacc_smooth, s.qLD, s.qLDiagInv, 0, t.nv);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
