// Euler and implicitfast: the acceleration with the dampers' forces of the step's end.
#include "lanes/stages/blas.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void DampedAcceleration(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nC; ++i) s.H[i] = s.M[i];
  for (int i = 0; i < t.nv; ++i) {
    Lane& diagonal = s.H[t.M_rowadr[i] + t.M_rownnz[i] - 1];
    diagonal = diagonal + t.timestep * s.dof_damping[i];
  }
  Factor(t, s.H, s.H_inverse_diagonal);
  for (int i = 0; i < t.nv; ++i) s.acc[i] = s.qfrc_smooth[i] + s.qfrc_constraint[i];
  SolveFactored(t, s.acc, s.H, s.H_inverse_diagonal, 0, t.nv);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
