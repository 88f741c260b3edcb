// What rows of all constraints are made with: softness, impedance, regularization.
#pragma once

#include "lanes/stages/scratch.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// Softness in lanes, as lanes' constraints may differ.
class LaneSoftness {
 public:
  Lane d0, dwidth, width, midpoint, rise, fall, power, stiffness, damping;

  /// From each lane's index of Scratch::softness.
  LaneSoftness(const Lane* softness, const int* index);
};

/// solimp's sigmoid of the violation.
Lane Impedance(const LaneSoftness& soft, Lane violation);
Lane Regularizer(Lane impedance, Lane inverse_weight);

/// Lanes in which a row is no finite number: MuJoCo would see it otherwise than these stages do.
inline unsigned LanesWithBadRow(const Rows& rows, int r, Lane residual) {
  constexpr double kInfinity = __builtin_huge_val();
  const Mask good = (Abs(residual) < kInfinity) & (rows.D[r] > 0.0) & (rows.D[r] < kInfinity);
  return rows.valid[r] & ~Bits(good);
}

/// Bits of lanes.
inline unsigned LanesWithMoreThan(const int* count, int k) {
  unsigned bits = 0;
  for (int l = 0; l < kWidth; ++l) bits |= static_cast<unsigned>(k < count[l]) << l;
  return bits;
}

/// Lanes in which a block of the Jacobian is not zero; MuJoCo leaves out others' rows.
inline unsigned LanesThatAct(const Lane* J, int count) {
  unsigned lanes = 0;
  for (int i = 0; i < count && lanes != kAllLanes; ++i) lanes |= Bits(J[i] != 0.0) & kAllLanes;
  return lanes;
}

/// Sets a row of the Jacobian to how a tendon's length changes.
void TendonRow(const Tables& t, const Scratch& s, int tendon, Lane* J);
uint64_t DofsOfTendon(const Tables& t, int tendon);
/// Bits of the trees of dofs whose entries in a row of the Jacobian are not zero, in a lane, …
uint64_t TreesByJacobian(const Tables& t, const Rows& rows, int r, int lane);
/// … and in each.
void SetTreesByJacobian(const Tables& t, Rows& rows, int r);
/// The point of the first or second body (or site) of a connect or weld.
void TiedPoint(const Scratch& s, const Equality& e, bool first, Lane* pos);
/// The torque that the forces of a weld's last three rows amount to.
void WeldTorque(const Scratch& s, const Equality& e, Lane* torque);
/// Rows of equalities, which are the first.
void FillEqualityRows(const Tables& t, Scratch& s);
/// Subtracts how connected points and frames move by their dofs' turning: mj_Jdotv, taken
/// from their rows' aref.
void SubtractEqualityBias(const Tables& t, Scratch& s);
/// The greatest force of a row of dry friction.
inline Lane LossOf(const Tables& t, const Scratch& s, int r) {
  const FrictionLoss& loss = t.friction_loss[r - t.num_equality_rows];
  return loss.tendon >= 0 ? Splat(loss.tendon_loss) : s.dof_frictionloss[loss.dof];
}
/// Rows of contacts, behind those that are there; they complete contacts' frames.
void AddContactRows(const Tables& t, Scratch& s);
/// mju_makeFrame: an orthonormal frame from a normal and a wished tangent. Returns the lanes in
/// which the normal has no direction, where MuJoCo raises an error.
unsigned CompleteFrame(Lane* frame);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
