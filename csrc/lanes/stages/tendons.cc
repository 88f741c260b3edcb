// Lengths and velocities of fixed tendons, for those who read them: such tendons act on nothing.
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void TendonLengths(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.ntendon; ++i) {
    const Tendon& tendon = t.tendon[i];
    s.ten_length[i] = Splat(0);
    for (int k = 0; k < tendon.num_terms; ++k) {
      s.ten_length[i] = s.ten_length[i] + tendon.coef[k] * s.qpos[tendon.qpos[k]];
    }
  }
}

void TendonVelocities(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.ntendon; ++i) {
    const Tendon& tendon = t.tendon[i];
    s.ten_velocity[i] = Splat(0);
    for (int k = 0; k < tendon.num_terms; ++k) {
      s.ten_velocity[i] = s.ten_velocity[i] + tendon.coef[k] * s.qvel[tendon.dof[k]];
    }
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
