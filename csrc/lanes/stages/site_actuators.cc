#include "lanes/stages/site_actuators.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/passive.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void TransmitSite(const Tables& t, Scratch& s, int a) {
  const int site = t.actuator[a].target;
  const Lane* gear = s.actuator_gear + kGear * a;
  const Lane* mat = s.site_xmat + 9 * site;
  const Lane* center = s.subtree_com + 3 * t.body[t.site[site].body].root;
  Lane force[3], torque[3], arm[3];
  Rotate(force, mat, gear);
  Rotate(torque, mat, gear + 3);
  for (int i = 0; i < 3; ++i) arm[i] = s.site_xpos[3 * site + i] - center[i];
  s.actuator_length[a] = Splat(0);
  const int begin = t.moment.rowadr[a], end = begin + t.moment.rownnz[a];
  for (int k = begin; k < end; ++k) {
    const Lane* motion = s.cdof + 6 * t.moment.colind[k];
    Lane moved[3];
    MovePoint(moved, motion, arm);
    s.actuator_moment[k] = DotFromZero(moved, force) + DotFromZero(motion, torque);
  }
}

#ifndef PYFASTENV_RECORD
void LeaveOutZeros(const Tables& t, Scratch& s, int a) {
  const int begin = t.moment.rowadr[a], end = begin + t.moment.rownnz[a];
  Mask some = Splat(0) != 0.0;
  for (int k = begin; k < end; ++k) some = some | (s.actuator_moment[k] == 0.0);
  for (unsigned lanes = Bits(some) & kAllLanes; lanes != 0; lanes &= lanes - 1) {
    const int l = __builtin_ctz(lanes);
    double moment[kMaxChain], qvel[kMaxChain];
    int index[kMaxChain], count = 0;
    for (int k = begin; k < end; ++k) {
      const double x = At(s.actuator_moment[k], l);
      if (x == 0) continue;
      moment[count] = x;
      qvel[count] = At(s.qvel[t.moment.colind[k]], l);
      index[count] = count;
      ++count;
    }
    At(s.actuator_velocity[a], l) = DotSparse(moment, qvel, index, count);
  }
}
#endif

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
