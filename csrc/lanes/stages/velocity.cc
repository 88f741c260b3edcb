// Spatial velocities of bodies and the derivatives of the dofs' motions: mj_comVel.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// velocity += the motions of three dofs, from `dof` on
void AddThreeDofs(const Scratch& s, int dof, Lane* velocity) {
  const Lane* motion = s.cdof + 6 * dof;
  const Lane* v = s.qvel + dof;
  for (int i = 0; i < 6; ++i) {
    velocity[i] =
        velocity[i] + (((0.0 + motion[i] * v[0]) + motion[6 + i] * v[1]) + motion[12 + i] * v[2]);
  }
}

// cdof_dot of a joint's dofs, whose body so far moves with `velocity`; adds what they move it with.
void AddJoint(const Joint& joint, Scratch& s, Lane* velocity) {
  int dof = joint.dof;
  if (joint.kind == JointKind::kFree) {
    for (int i = 0; i < 18; ++i) s.cdof_dot[6 * dof + i] = Splat(0);
    AddThreeDofs(s, dof, velocity);
    dof += 3;
  }
  const bool rotation = HasRotation(joint);
  for (int i = dof; i < dof + (rotation ? 3 : 1); ++i) {
    CrossMotion(s.cdof_dot + 6 * i, velocity, s.cdof + 6 * i);
  }
  if (rotation) return AddThreeDofs(s, dof, velocity);
  for (int i = 0; i < 6; ++i) velocity[i] = velocity[i] + s.cdof[6 * dof + i] * s.qvel[dof];
}

}  // namespace

void Velocities(const Tables& t, Scratch& s) {
  for (int i = 0; i < 6; ++i) s.cvel[i] = Splat(0);
  for (int b = 1; b < t.nbody; ++b) {
    const Body& body = t.body[b];
    Lane velocity[6];
    for (int i = 0; i < 6; ++i) velocity[i] = s.cvel[6 * body.parent + i];
    for (int j = body.first_joint; j < body.first_joint + body.num_joints; ++j) {
      AddJoint(t.joint[j], s, velocity);
    }
    for (int i = 0; i < 6; ++i) s.cvel[6 * b + i] = velocity[i];
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
