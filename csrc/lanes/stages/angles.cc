// Functions of joints' angles that the C library computes, which later stages need: sine and cosine
// of hinges' half angles, how far springs of rotations and balls with actuators are turned.
#include "lanes/stages/sine_cosine.h"
#include "lanes/stages/stages.h"
#include "lanes/stages/turns.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// The quaternion that stands in qpos, made a unit.
void CopyUnit(const Scratch& s, int qpos, Lane* q) {
  for (int i = 0; i < 4; ++i) q[i] = s.qpos[qpos + i];
  Normalize4(q);
}

// mju_subQuat: the turn from a spring's rest to the joint's rotation.
void SpringTurn(const Scratch& s, int qpos, Lane* turn) {
  Lane now[4], back[4];
  CopyUnit(s, qpos, now);
  for (int i = 0; i < 4; ++i) {
    back[i] = i == 0 ? s.qpos_spring[qpos] : -s.qpos_spring[qpos + i];
  }
  MulQuat(back, back, now);
  QuatToTurn(turn, back);
}

}  // namespace

void Angles(const Tables& t, Scratch& s) {
  for (int j = 0; j < t.njnt; ++j) {
    const Joint& joint = t.joint[j];
    if (joint.driven) {
      Lane now[4];
      CopyUnit(s, joint.qpos, now);
      QuatToTurn(s.ball_turn + 3 * j, now);
    }
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
