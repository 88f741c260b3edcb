// Forces of all actuators that pull at a tendon.
#pragma once

#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

inline bool PullsAt(const Actuator& actuator, int tendon) {
  return actuator.transmission == Transmission::kTendon && actuator.target == tendon;
}

inline Lane SumOfTendonForces(const Tables& t, const Scratch& s, int tendon) {
  Lane sum = Splat(0);
  for (int a = 0; a < t.nu; ++a) {
    if (PullsAt(t.actuator[a], tendon)) sum = sum + s.actuator_force[a];
  }
  return sum;
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
