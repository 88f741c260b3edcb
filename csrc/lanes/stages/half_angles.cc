// Sine and cosine of hinges' half angles, the first thing that mj_kinematics needs.
#include "lanes/stages/sine_cosine.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void HalfAngles(const Tables& t, Scratch& s) {
  for (int j = 0; j < t.njnt; ++j) {
    const Joint& joint = t.joint[j];
    if (joint.kind != JointKind::kHinge) continue;
    const Lane half = (s.qpos[joint.qpos] - s.qpos0[joint.qpos]) * 0.5;
    SineCosine(t.sine_by_series, half, s.sin_half[j], s.cos_half[j]);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
