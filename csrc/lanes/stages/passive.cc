// Forces that need no control: springs, dampers, and a fluid around boxes of the bodies' inertia.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// MuJoCo leaves out what has no coefficient, which is seen in the sign of a zero.
Lane WhereNotZero(Lane coefficient, Lane force) {
  const Mask none = coefficient == 0.0;
  return Any(none) ? Select(none, Splat(0), force) : force;
}

void SpringsAndDampers(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.qfrc_passive[i] = Splat(0);
  for (int j = 0; j < t.njnt; ++j) {
    const Joint& joint = t.joint[j];
    if (!joint.has_spring) continue;
    const Lane x = s.qpos[joint.qpos] - s.qpos_spring[joint.qpos];
    s.qfrc_passive[joint.dof] = WhereNotZero(s.jnt_stiffness[j], -x * s.jnt_stiffness[j]);
  }
  for (int i = 0; i < t.nv; ++i) {
    const Lane damping = s.dof_damping[i];
    const Lane damper =
        t.dof[i].has_damper ? WhereNotZero(damping, -s.qvel[i] * damping) : Splat(0);
    s.qfrc_passive[i] = s.qfrc_passive[i] + damper;
  }
}

// Adds J(point)ᵀ of a force and a torque on a body; `arm` is the point less the root's centre.
void AddWrench(const Tables& t, const Scratch& s, int last_dof, const Lane* arm, const Lane* torque,
               const Lane* force, Lane* qfrc) {
  for (int i = last_dof; i >= 0; i = t.dof[i].parent) {
    const Lane* motion = s.cdof + 6 * i;
    Lane moved[3];  // the point's velocity per unit of this dof's
    Cross(moved, motion, arm);
    for (int k = 0; k < 3; ++k) moved[k] = motion[3 + k] + moved[k];
    qfrc[i] = qfrc[i] + Dot3(moved, force);
    qfrc[i] = qfrc[i] + Dot3(motion, torque);
  }
}

void FluidOnBody(const Tables& t, Scratch& s, int b) {
  const Body& body = t.body[b];
  const Lane* velocity = s.cvel + 6 * b;
  const Lane* mat = s.ximat + 9 * b;
  Lane arm[3], lever[3], linear[3], local[6], drag[6], torque[3], force[3];
  for (int i = 0; i < 3; ++i) arm[i] = s.xipos[3 * b + i] - s.subtree_com[3 * body.root + i];
  Cross(lever, arm, velocity);
  for (int i = 0; i < 3; ++i) linear[i] = velocity[3 + i] - lever[i];
  RotateBack(local, mat, velocity);
  RotateBack(local + 3, mat, linear);
  for (int i = 0; i < 3; ++i) {
    drag[i] = local[i] * s.viscous_torque[b];
    drag[3 + i] = local[3 + i] * s.viscous_force[b];
    drag[i] = drag[i] - s.quadratic_torque[3 * b + i] * Abs(local[i]) * local[i] / 64.0;
    drag[3 + i] = drag[3 + i] - s.quadratic_force[3 * b + i] * Abs(local[3 + i]) * local[3 + i];
  }
  Rotate(torque, mat, drag);
  Rotate(force, mat, drag + 3);
  AddWrench(t, s, body.last_dof, arm, torque, force, s.fluid_force);
}

}  // namespace

void PassiveForces(const Tables& t, Scratch& s) {
  SpringsAndDampers(t, s);
  if (!t.has_fluid) return;
  for (int i = 0; i < t.nv; ++i) s.fluid_force[i] = Splat(0);
  for (int b = 1; b < t.nbody; ++b) {
    if (t.body[b].in_fluid) FluidOnBody(t, s, b);
  }
  for (int i = 0; i < t.nv; ++i) s.qfrc_passive[i] = s.qfrc_passive[i] + s.fluid_force[i];
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
