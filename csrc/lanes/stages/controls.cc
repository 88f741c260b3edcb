// Controls that MuJoCo would not take: mj_fwdActuation's check.
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void CheckControls(const Tables& t, Scratch& s) {
  constexpr double kMaxVal = 1e10;  // mjMAXVAL
  for (int a = 0; a < t.nu; ++a) {
    const Lane ctrl = ClampedControl(t.actuator[a], s, a);
    s.redo |= Bits(!(Abs(ctrl) <= kMaxVal));
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
