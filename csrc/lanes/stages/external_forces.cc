// Contacts' forces on bodies: mj_rnePostConstraint's cfrc_ext.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// A contact's force in its frame: normal, two tangents.
void ContactForce(const Tables& t, const Scratch& s, int k, Lane* force) {
  const Contacts& c = s.contacts;
  const Lane* f = s.rows.force + c.first_row[k];
  force[0] = f[0];
  force[1] = force[2] = Splat(0);
  if (c.num_rows[k] == 1) return;
  unsigned pyramids = 0;
  Lane friction = Splat(0);
  for (int l = 0; l < kWidth; ++l) {
    if (k >= c.count[l]) continue;
    const int pair = c.pair[k][l];
    pyramids |= static_cast<unsigned>(t.surface[t.pair[pair].surface].condim == 3) << l;
    At(friction, l) = At(s.pair_friction[pair], l);
  }
  const Mask pyramid = FromBits(pyramids);
  force[0] = Select(pyramid, ((f[0] + f[1]) + f[2]) + f[3], f[0]);
  force[1] = Select(pyramid, (f[0] - f[1]) * friction, Splat(0));
  force[2] = Select(pyramid, (f[2] - f[3]) * friction, Splat(0));
}

}  // namespace

void ExternalForces(const Tables& t, Scratch& s) {
  const Contacts& c = s.contacts;
  for (int i = 0; i < 6 * t.nbody; ++i) s.cfrc_ext[i] = Splat(0);
  const Lane* com = s.subtree_com + 3 * t.contact_root;
  for (int k = 0; k < c.max_count; ++k) {
    const Lane* frame = c.frame + 9 * k;
    Lane local[3], wrench[6], arm[3], moment[3];
    const Lane no_torque[3] = {Splat(0), Splat(0), Splat(0)};
    ContactForce(t, s, k, local);
    RotateBack(wrench + 3, frame, local);
    RotateBack(wrench, frame, no_torque);
    for (int i = 0; i < 3; ++i) arm[i] = com[i] - c.pos[3 * k + i];
    Cross(moment, arm, wrench + 3);
    for (int i = 0; i < 3; ++i) wrench[i] = wrench[i] - moment[i];
    for (int l = 0; l < kWidth; ++l) {
      if (k >= c.count[l]) continue;
      const Pair& pair = t.pair[c.pair[k][l]];
      for (int i = 0; i < 6; ++i) {
        if (pair.body1 != 0) At(s.cfrc_ext[6 * pair.body1 + i], l) -= At(wrench[i], l);
        if (pair.body2 != 0) At(s.cfrc_ext[6 * pair.body2 + i], l) += At(wrench[i], l);
      }
    }
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
