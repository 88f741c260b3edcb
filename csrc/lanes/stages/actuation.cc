// Actuators' forces and the acceleration without constraints: mj_transmission, mj_fwdActuation,
// mj_fwdAcceleration.
#include "lanes/stages/blas.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void Actuation(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.qfrc_actuator[i] = Splat(0);
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    const Lane ctrl = ClampedControl(actuator, s.ctrl[a]);
    s.actuator_length[a] = s.qpos[actuator.qpos] * actuator.gear;
    s.actuator_velocity[a] = 0.0 + actuator.gear * s.qvel[actuator.dof];
    Lane bias = Splat(0);
    if (actuator.has_bias) {
      bias = actuator.bias[0] + actuator.bias[1] * s.actuator_length[a] +
             actuator.bias[2] * s.actuator_velocity[a];
    }
    Lane force = actuator.gain * ctrl + bias;
    if (actuator.clamp_force) force = Clip(force, actuator.force_range[0], actuator.force_range[1]);
    s.actuator_force[a] = force;
    s.qfrc_actuator[actuator.dof] = s.qfrc_actuator[actuator.dof] + actuator.gear * force;
  }
  for (int k = 0; k < t.num_force_limits; ++k) {
    const ForceLimit& limit = t.force_limit[k];
    s.qfrc_actuator[limit.dof] = Clip(s.qfrc_actuator[limit.dof], limit.range[0], limit.range[1]);
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
