// Actuators that push and turn at a site, in its frame: thrusters, rotors.
#pragma once

#include "lanes/stages/scratch.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// mj_transmission of such an actuator: length (0) and moments.
void TransmitSite(const Tables& t, Scratch& s, int a);
/// Computes the velocity anew in lanes with moments of zero. MuJoCo's rows leave these out, which
/// groups the others' sum in another way.
void LeaveOutZeros(const Tables& t, Scratch& s, int a);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
