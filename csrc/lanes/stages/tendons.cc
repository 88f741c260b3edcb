// Fixed tendons' lengths and Jacobians, and all tendons' velocities.
#include "lanes/stages/blas.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void FixedTendons(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.ntendon; ++i) {
    const Tendon& tendon = t.tendon[i];
    if (tendon.num_terms == 0) continue;
    ClearTendon(t, s, i);
    for (int k = tendon.first_term; k < tendon.first_term + tendon.num_terms; ++k) {
      const TendonTerm& term = t.tendon_term[k];
      s.ten_length[i] = s.ten_length[i] + s.wrap_prm[k] * s.qpos[term.qpos];
      s.ten_J[term.entry] = s.ten_J[term.entry] + s.wrap_prm[k];
    }
  }
}

void TendonVelocities(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.ntendon; ++i) {
    const int adr = t.ten_J.rowadr[i];
    s.ten_velocity[i] = DotSparse(s.ten_J + adr, s.qvel, t.ten_J.colind + adr, t.ten_J.rownnz[i]);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
