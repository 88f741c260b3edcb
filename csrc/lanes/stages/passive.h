// What passive forces and their derivatives have in common.
#pragma once

#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// linear + a x + b x² …: mju_polyForce; dampers take |x|.
inline Lane WithPolynomial(Lane linear, const Polynomial& polynomial, Lane x) {
  Lane power = x;
  for (const double coefficient : polynomial.coefficient) {
    linear = linear + coefficient * power;
    power = power * x;
  }
  return linear;
}

/// The derivative of x times that: mjd_xPolyForce.
inline Lane WithPolynomialsDerivative(Lane linear, const Polynomial& polynomial, Lane x) {
  Lane power = x;
  double exponent = 2;
  for (const double coefficient : polynomial.coefficient) {
    linear = linear + exponent++ * coefficient * power;
    power = power * x;
  }
  return linear;
}

/// A damper's derivative by speed v, negative.
inline Lane DamperDerivative(Lane damping, const Polynomial& polynomial, Lane v) {
  return polynomial.is_zero ? damping : WithPolynomialsDerivative(damping, polynomial, Abs(v));
}

inline Lane DofDamping(const Tables& t, const Scratch& s, int i) {
  return s.dof_damping[i] + t.dof[i].more_damping;
}
inline Lane TendonDamping(const Tables& t, const Scratch& s, int i) {
  return s.tendon_damping[i] + t.tendon[i].more_damping;
}

/// The velocity of a point per unit of a dof's; `arm` is the point less the root's centre.
inline void MovePoint(Lane* moved, const Lane* motion, const Lane* arm) {
  Cross(moved, motion, arm);
  for (int k = 0; k < 3; ++k) moved[k] = motion[3 + k] + moved[k];
}

/// a · b as mju_mulMatTVec has it, a sum that begins at zero: seen in the sign of a zero.
inline Lane DotFromZero(const Lane* a, const Lane* b) {
  Lane r = Splat(0);
  for (int i = 0; i < 3; ++i) r = r + a[i] * b[i];
  return r;
}

/// Adds J(point)ᵀ of a force and a torque on a body.
inline void AddWrench(const Tables& t, const Scratch& s, int last_dof, const Lane* arm,
                      const Lane* torque, const Lane* force, Lane* qfrc) {
  for (int i = last_dof; i >= 0; i = t.dof[i].parent) {
    const Lane* motion = s.cdof + 6 * i;
    Lane moved[3];
    MovePoint(moved, motion, arm);
    qfrc[i] = qfrc[i] + Dot3(moved, force);
    qfrc[i] = qfrc[i] + Dot3(motion, torque);
  }
}

/// Velocity of a body's inertia against the fluid, in its frame: rotation, translation. Sets `arm`:
/// its place less the root's centre.
void VelocityInFluid(const Tables& t, const Scratch& s, int b, Lane* arm, Lane* local);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
