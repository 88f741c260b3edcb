// Actuators' forces and the acceleration without constraints: mj_transmission, mj_fwdActuation,
// mj_fwdAcceleration.
#include "lanes/stages/blas.h"
#include "lanes/stages/muscles.h"
#include "lanes/stages/site_actuators.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

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
    for (int k = 0; k < 6; ++k) moment[k] = s.actuator_gear[kGear * a + k];
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

}  // namespace

void Actuation(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.qfrc_actuator[i] = Splat(0);
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    Transmit(t, s, a);
    const int adr = t.moment.rowadr[a], count = t.moment.rownnz[a];
    const int* dof = t.moment.colind + adr;
    const Lane* moment = s.actuator_moment + adr;
    s.actuator_velocity[a] = DotSparse(moment, s.qvel, dof, count);
#ifndef PYFASTENV_RECORD
    if (actuator.transmission == Transmission::kSite) LeaveOutZeros(t, s, a);
#endif
    Lane force = Force(t, s, a);
    const Lane* range = s.actuator_forcerange + 2 * a;
    if (actuator.clamp_force) force = Clip(force, range[0], range[1]);
    s.actuator_force[a] = force;
    for (int k = 0; k < count; ++k) {
      s.qfrc_actuator[dof[k]] = s.qfrc_actuator[dof[k]] + moment[k] * force;
    }
  }
  for (int j = 0; j < t.njnt && t.nu > 0; ++j) {
    const int dof = t.joint[j].dof;
    if (t.joint[j].act_gravcomp) s.qfrc_actuator[dof] = s.qfrc_actuator[dof] + s.qfrc_gravcomp[dof];
  }
  for (int k = 0; k < t.num_force_limits; ++k) {
    const ForceLimit& limit = t.force_limit[k];
    const Lane* range = s.jnt_actfrcrange + 2 * limit.joint;
    s.qfrc_actuator[limit.dof] = Clip(s.qfrc_actuator[limit.dof], range[0], range[1]);
  }
}

void SmoothAcceleration(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) {
    // the zero is qfrc_applied and xfrc_applied: rows that have such forces take no lanes
    s.qfrc_smooth[i] = PlusZero(s.qfrc_passive[i] - s.qfrc_bias[i]) + s.qfrc_actuator[i];
    s.qacc_smooth[i] = s.qfrc_smooth[i];
  }
  SolveFactored(t, s.qacc_smooth, s.qLD, s.qLDiagInv, 0, t.nv);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
