// Sine and cosine of hinges' half angles, the first thing that mj_kinematics needs.
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

// The library's functions, lane by lane: the only ones that are not exact operations.
void HalfAngles(const Tables& t, Scratch& s) {
  for (int j = 0; j < t.njnt; ++j) {
    const Joint& joint = t.joint[j];
    if (joint.kind != JointKind::kHinge) continue;
    const Lane half = (s.qpos[joint.qpos] - joint.qpos0) * 0.5;
    for (int l = 0; l < kWidth; ++l) {
      const double x = At(half, l);
      At(s.sin_half[j], l) = sin(x);
      At(s.cos_half[j], l) = cos(x);
    }
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
