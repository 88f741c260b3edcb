// Forces that the caller applies to dofs and bodies: qfrc_applied, and xfrc_applied by
// mj_xfrcAccumulate.
#include "lanes/stages/blas.h"
#include "lanes/stages/passive.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

bool IsZero(const Lane* x, int n) {
  Mask zero = x[0] == 0.0;
  for (int i = 1; i < n; ++i) zero = zero & (x[i] == 0.0);
  return Bits(zero) == kAllLanes;
}

}  // namespace

void AddAppliedForces(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) {
    const Lane applied = (s.qfrc_passive[i] - s.qfrc_bias[i]) + s.qfrc_applied[i];
    s.qfrc_smooth[i] = applied + s.qfrc_actuator[i];
  }
  for (int b = 1; b < t.nbody; ++b) {
    const Lane* wrench = s.xfrc_applied + 6 * b;
    if (IsZero(wrench, 6)) continue;
    const Lane* com = s.subtree_com + 3 * t.body[b].root;
    Lane arm[3];
    for (int i = 0; i < 3; ++i) arm[i] = s.xipos[3 * b + i] - com[i];
    AddWrench(t, s, t.body[b].last_dof, arm, wrench + 3, wrench, s.qfrc_smooth);
  }
  for (int i = 0; i < t.nv; ++i) s.qacc_smooth[i] = s.qfrc_smooth[i];
  SolveFactored(t, s.qacc_smooth, s.qLD, s.qLDiagInv, 0, t.nv);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
