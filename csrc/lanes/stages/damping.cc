// Euler and implicitfast: the acceleration with the velocity-dependent forces of the step's end.
#include "lanes/stages/blas.h"
#include "lanes/stages/passive.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// M with the dampers
void DampedInertia(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nC; ++i) s.H[i] = s.M[i];
  for (int i = 0; i < t.nv; ++i) {
    Lane& diagonal = s.H[t.M_rowadr[i] + t.M_rownnz[i] - 1];
    diagonal =
        diagonal + t.timestep * DamperDerivative(DofDamping(t, s, i), t.dof[i].damper, s.qvel[i]);
  }
}

}  // namespace

void DampedAcceleration(const Tables& t, Scratch& s) {
  if (t.integrator == Integrator::kEuler) DampedInertia(t, s);
  Factor(t, s.H, s.H_inverse_diagonal);
  for (int i = 0; i < t.nv; ++i) s.acc[i] = s.qfrc_smooth[i] + s.qfrc_constraint[i];
  SolveFactored(t, s.acc, s.H, s.H_inverse_diagonal, 0, t.nv);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
