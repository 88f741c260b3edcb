// Actuators' forces and the acceleration without constraints: mj_transmission, mj_fwdActuation,
// mj_fwdAcceleration.
#include "lanes/stages/blas.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void Actuation(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.qfrc_actuator[i] = Splat(0);
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    const Lane gear = s.actuator_gear[kGear * a];
    const Lane ctrl = ClampedControl(actuator, s, a);
    s.actuator_length[a] = s.qpos[actuator.qpos] * gear;
    s.actuator_velocity[a] = 0.0 + gear * s.qvel[actuator.dof];
    Lane bias = Splat(0);
    if (actuator.has_bias) {
      const Lane* b = s.actuator_biasprm + kBiasParameters * a;
      bias = b[0] + b[1] * s.actuator_length[a] + b[2] * s.actuator_velocity[a];
    }
    Lane force = s.actuator_gainprm[kGainParameters * a] * ctrl + bias;
    const Lane* range = s.actuator_forcerange + 2 * a;
    if (actuator.clamp_force) force = Clip(force, range[0], range[1]);
    s.actuator_force[a] = force;
    s.qfrc_actuator[actuator.dof] = s.qfrc_actuator[actuator.dof] + gear * force;
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
