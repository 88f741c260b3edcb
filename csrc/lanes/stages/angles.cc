// Functions of joints' angles that the C library computes, which later stages need: sine and cosine
// of hinges' half angles, and how far springs of rotations are turned.
#include "lanes/stages/sine_cosine.h"
#include "lanes/stages/stages.h"
#include "lanes/stages/turns.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// mju_subQuat: the turn from a spring's rest to the joint's rotation.
void SpringTurn(const Scratch& s, int qpos, Lane* turn) {
  Lane now[4], back[4];
  for (int i = 0; i < 4; ++i) {
    now[i] = s.qpos[qpos + i];
    back[i] = i == 0 ? s.qpos_spring[qpos] : -s.qpos_spring[qpos + i];
  }
  Normalize4(now);
  MulQuat(back, back, now);
  QuatToTurn(turn, back);
}

}  // namespace

void Angles(const Tables& t, Scratch& s) {
  for (int j = 0; j < t.njnt; ++j) {
    const Joint& joint = t.joint[j];
    if (joint.kind == JointKind::kHinge) {
      const Lane half = (s.qpos[joint.qpos] - s.qpos0[joint.qpos]) * 0.5;
      SineCosine(t.sine_by_series, half, s.sin_half[j], s.cos_half[j]);
    }
    if (joint.has_spring && HasRotation(joint)) {
      SpringTurn(s, joint.qpos + (joint.kind == JointKind::kFree ? 3 : 0), s.spring_turn + 3 * j);
    }
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
