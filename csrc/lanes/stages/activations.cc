// Activations of actuators with dynamics: mj_fwdActuation's act_dot, mj_advance's act.
#include "lanes/stages/muscles.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void ActivationRates(const Tables& t, Scratch& s) {
  if (!t.actuation) return;
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    if (actuator.dynamics == Dynamics::kNone) continue;
    const Lane ctrl = ClampedControl(actuator, s, a);
    Lane& rate = s.act_dot[actuator.act];
    const Lane act = s.act[actuator.act];
    if (actuator.dynamics == Dynamics::kIntegrator) {
      rate = ctrl;
    } else if (actuator.dynamics == Dynamics::kMuscle) {
      rate = MuscleActivationRate(actuator.muscle, ctrl, act);
    } else {
      rate = (ctrl - act) / actuator.time_constant;
    }
  }
}

void AdvanceActivations(const Tables& t, Scratch& s, const Lane* rates) {
  if (!t.actuation) return;
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    if (actuator.dynamics == Dynamics::kNone) continue;
    const Lane rate = actuator.disabled ? Splat(0) : rates[actuator.act];
    s.act[actuator.act] = NextActivation(t, actuator, s, rate);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
