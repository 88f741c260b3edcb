// A fluid's forces on boxes of bodies' inertia: mj_inertiaBoxFluidModel.
#include "lanes/stages/passive.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

void FluidOnBody(const Tables& t, Scratch& s, int b) {
  const Lane* mat = s.ximat + 9 * b;
  Lane arm[3], local[6], drag[6], torque[3], force[3];
  VelocityInFluid(t, s, b, arm, local);
  for (int i = 0; i < 3; ++i) {
    drag[i] = local[i] * s.viscous_torque[b];
    drag[3 + i] = local[3 + i] * s.viscous_force[b];
    drag[i] = drag[i] - s.quadratic_torque[3 * b + i] * Abs(local[i]) * local[i] / 64.0;
    drag[3 + i] = drag[3 + i] - s.quadratic_force[3 * b + i] * Abs(local[3 + i]) * local[3 + i];
  }
  Rotate(torque, mat, drag);
  Rotate(force, mat, drag + 3);
  AddWrench(t, s, t.body[b].last_dof, arm, torque, force, s.qfrc_fluid);
}

}  // namespace

void VelocityInFluid(const Tables& t, const Scratch& s, int b, Lane* arm, Lane* local) {
  const Lane* velocity = s.cvel + 6 * b;
  const Lane* mat = s.ximat + 9 * b;
  Lane lever[3], linear[3], wind[3];
  for (int i = 0; i < 3; ++i) {
    arm[i] = s.xipos[3 * b + i] - s.subtree_com[3 * t.body[b].root + i];
  }
  Cross(lever, arm, velocity);
  for (int i = 0; i < 3; ++i) linear[i] = velocity[3 + i] - lever[i];
  RotateBack(local, mat, velocity);
  RotateBack(local + 3, mat, linear);
  if (!t.has_wind) return;
  RotateBack(wind, mat, s.opt_wind);
  for (int i = 0; i < 3; ++i) local[3 + i] = local[3 + i] - wind[i];
}

void FluidForces(const Tables& t, Scratch& s) {
  for (int b = 1; b < t.nbody; ++b) {
    if (t.body[b].in_fluid) FluidOnBody(t, s, b);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
