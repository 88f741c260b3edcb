// Products with the inertia matrix and its inverse that the solvers ask for.
#include "lanes/stages/blas.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void AccelerationProduct(const Tables& t, Scratch& s) { MulInertiaMatrix(t, s.Ma, s.M, s.qacc); }

void SearchProduct(const Tables& t, Scratch& s) { MulInertiaMatrix(t, s.Mv, s.M, s.search); }

void ConstraintAcceleration(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.acc[i] = s.qfrc_constraint[i];
  SolveFactored(t, s.acc, s.qLD, s.qLDiagInv, 0, t.nv);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
