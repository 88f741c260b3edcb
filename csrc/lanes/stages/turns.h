// Rotations as turns about an axis: the way back from quaternions.
#pragma once

#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// The turn that a unit quaternion is: its axis times its angle, at most half a turn. The arc is
/// the C library's, lane by lane.
inline void QuatToTurn(Lane* turn, const Lane* q) {
  constexpr double kPi = 3.14159265358979323846;
  Lane axis[3] = {q[1], q[2], q[3]};
  const Lane sine = Normalize3(axis);
  Lane angle = sine;
  for (int l = 0; l < kWidth; ++l) At(angle, l) = 2 * atan2(At(sine, l), At(q[0], l));
  angle = Select(angle > kPi, angle - 2 * kPi, angle);
  for (int i = 0; i < 3; ++i) turn[i] = axis[i] * angle;
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
