// Activations of actuators with dynamics: mj_fwdActuation's act_dot, mj_advance's act.
#include "lanes/stages/muscles.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void ActivationRates(const Tables& t, Scratch& s) {
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
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    if (actuator.dynamics == Dynamics::kNone) continue;
    s.act[actuator.act] = NextActivation(t, actuator, s, rates[actuator.act]);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
