// Forces that need no control: springs, dampers, gravity compensation; a fluid's are in fluid.cc.
#include "lanes/stages/passive.h"

#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// A spring that pulls back by x of it. MuJoCo leaves out what has no coefficient, which is seen in
// the sign of a zero.
Lane SpringForce(Lane stiffness, const Polynomial& polynomial, Lane x) {
  if (polynomial.is_zero) return ZeroWhereNone(stiffness, -x * stiffness);
  return -x * WithPolynomial(stiffness, polynomial, x);
}

// The same of a free joint's place, or of a rotation's turn.
void PullBack(Lane stiffness, const Polynomial& polynomial, const Lane* x, Lane* force) {
  const Lane k =
      polynomial.is_zero ? stiffness : WithPolynomial(stiffness, polynomial, Sqrt(Dot3(x, x)));
  for (int i = 0; i < 3; ++i) {
    const Lane pull = 0.0 + x[i] * -k;
    force[i] = polynomial.is_zero ? ZeroWhereNone(stiffness, pull) : pull;
  }
}

Lane DamperForce(Lane damping, const Polynomial& polynomial, Lane v) {
  if (polynomial.is_zero) return ZeroWhereNone(damping, -v * damping);
  return -v * WithPolynomial(damping, polynomial, Abs(v));
}

void JointSprings(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.qfrc_spring[i] = Splat(0);
  for (int j = 0; j < t.njnt; ++j) {
    const Joint& joint = t.joint[j];
    if (!joint.has_spring) continue;
    Lane* force = s.qfrc_spring + joint.dof;
    if (!HasRotation(joint)) {
      const Lane x = s.qpos[joint.qpos] - s.qpos_spring[joint.qpos];
      *force = SpringForce(s.jnt_stiffness[j], joint.spring, x);
      continue;
    }
    if (joint.kind == JointKind::kFree) {
      Lane moved[3];
      for (int i = 0; i < 3; ++i) {
        moved[i] = s.qpos[joint.qpos + i] - s.qpos_spring[joint.qpos + i];
      }
      PullBack(s.jnt_stiffness[j], joint.spring, moved, force);
      force += 3;
    }
    PullBack(s.jnt_stiffness[j], joint.spring, s.spring_turn + 3 * j, force);
  }
}

void DofDampers(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) {
    const Dof& dof = t.dof[i];
    s.qfrc_damper[i] =
        dof.has_damper ? DamperForce(DofDamping(t, s, i), dof.damper, s.qvel[i]) : Splat(0);
  }
}

// How far a tendon is beyond its spring's range.
Lane Stretch(const Scratch& s, int i) {
  const Lane length = s.ten_length[i];
  const Lane low = s.tendon_lengthspring[2 * i], high = s.tendon_lengthspring[2 * i + 1];
  return WhereLess(high, length, length - high, WhereLess(length, low, length - low, Splat(0)));
}

void TendonSpringsAndDampers(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.ntendon; ++i) {
    const Tendon& tendon = t.tendon[i];
    if (!tendon.has_spring && !tendon.has_damper) continue;
    const Lane spring = tendon.has_spring
                            ? SpringForce(s.tendon_stiffness[i], tendon.spring, Stretch(s, i))
                            : Splat(0);
    const Lane damper = tendon.has_damper
                            ? DamperForce(TendonDamping(t, s, i), tendon.damper, s.ten_velocity[i])
                            : Splat(0);
    const Mask none = (spring == 0.0) & (damper == 0.0);  // adds no zeros
    for (int k = t.ten_J.rowadr[i]; k < t.ten_J.rowadr[i] + t.ten_J.rownnz[i]; ++k) {
      const int dof = t.ten_J.colind[k];
      const Lane with_spring = s.qfrc_spring[dof] + s.ten_J[k] * spring;
      const Lane with_damper = s.qfrc_damper[dof] + s.ten_J[k] * damper;
      s.qfrc_spring[dof] = Select(none, s.qfrc_spring[dof], with_spring);
      s.qfrc_damper[dof] = Select(none, s.qfrc_damper[dof], with_damper);
    }
  }
}

// mj_gravcomp
void GravityCompensation(const Tables& t, Scratch& s) {
  for (int b = 1; b < t.nbody; ++b) {
    const Body& body = t.body[b];
    if (!body.gravcomp) continue;
    const Lane weight = -(s.body_mass[b] * s.body_gravcomp[b]);
    const Lane torque[3] = {Splat(0), Splat(0), Splat(0)};
    Lane arm[3], force[3];
    for (int i = 0; i < 3; ++i) {
      arm[i] = s.xipos[3 * b + i] - s.subtree_com[3 * body.root + i];
      force[i] = s.opt_gravity[i] * weight;
    }
    AddWrench(t, s, body.last_dof, arm, torque, force, s.qfrc_gravcomp);
  }
}

}  // namespace

void PassiveForces(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.qfrc_fluid[i] = s.qfrc_gravcomp[i] = Splat(0);
  JointSprings(t, s);
  DofDampers(t, s);
  if (!t.passive) {
    for (int i = 0; i < t.nv; ++i) s.qfrc_passive[i] = Splat(0);
    return;
  }
  TendonSpringsAndDampers(t, s);
  GravityCompensation(t, s);
  FluidForces(t, s);
  for (int i = 0; i < t.nv; ++i) {
    Lane& sum = s.qfrc_passive[i];
    sum = s.qfrc_spring[i] + s.qfrc_damper[i];
    if (t.has_fluid) sum = sum + s.qfrc_fluid[i];
    if (t.has_gravcomp && !t.joint[t.dof[i].joint].act_gravcomp) sum = sum + s.qfrc_gravcomp[i];
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
