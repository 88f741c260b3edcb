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

}  // namespace

void Velocities(const Tables& t, Scratch& s) {
  for (int i = 0; i < 6; ++i) s.cvel[i] = Splat(0);
  for (int b = 1; b < t.nbody; ++b) {
    const Body& body = t.body[b];
    Lane velocity[6];
    for (int i = 0; i < 6; ++i) velocity[i] = s.cvel[6 * body.parent + i];
    if (body.free) {
      const int dof = body.first_dof;
      for (int i = 0; i < 18; ++i) s.cdof_dot[6 * dof + i] = Splat(0);
      AddThreeDofs(s, dof, velocity);
      for (int j = dof + 3; j < dof + 6; ++j) {
        CrossMotion(s.cdof_dot + 6 * j, velocity, s.cdof + 6 * j);
      }
      AddThreeDofs(s, dof + 3, velocity);
    } else {
      for (int j = body.first_dof; j < body.first_dof + body.num_dofs; ++j) {
        CrossMotion(s.cdof_dot + 6 * j, velocity, s.cdof + 6 * j);
        for (int i = 0; i < 6; ++i) velocity[i] = velocity[i] + s.cdof[6 * j + i] * s.qvel[j];
      }
    }
    for (int i = 0; i < 6; ++i) s.cvel[6 * b + i] = velocity[i];
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
