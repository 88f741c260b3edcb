// Constraint rows of dry friction, joint limits and contacts: mj_makeConstraint,
// mj_referenceConstraint.
//
// Behind the rows of friction, a lane's r-th row is its r-th active limit; contacts' rows begin
// behind the most limits that any lane has. So lanes share rows though they hold different
// constraints.
#include "lanes/stages/rows.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// ---- dry friction -------------------------------------------------------------------------------

void FillFrictionRows(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  for (int r = 0; r < t.num_friction_losses; ++r) {
    const FrictionLoss& loss = t.friction_loss[r];
    rows.valid[r] = kAllLanes;
    rows.dofs[r] = uint64_t{1} << loss.dof;
    for (int l = 0; l < (t.several_trees ? kWidth : 0); ++l) {
      rows.trees[r][l] = uint64_t{1} << t.dof_tree[loss.dof];
    }
    for (int i = 0; i < t.nv; ++i) rows.J[r * t.nv + i] = Splat(i == loss.dof);
    int softness[kWidth];
    for (int l = 0; l < kWidth; ++l) softness[l] = loss.softness;
    const LaneSoftness soft(s.softness, softness);
    rows.violation[r] = Splat(0);
    rows.impedance[r] = Impedance(soft, rows.violation[r]);
    rows.stiffness[r] = Splat(0);
    rows.damping[r] = soft.damping;
    rows.R[r] = Regularizer(rows.impedance[r], s.dof_invweight0[loss.dof]);
    rows.D[r] = 1.0 / rows.R[r];
  }
}

// ---- limits -------------------------------------------------------------------------------------

void FindLimits(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  for (int l = 0; l < kWidth; ++l) rows.count[l] = t.num_friction_losses;
  for (int k = 0; k < t.num_limits; ++k) {
    const Limit& limit = t.limit[k];
    const Lane value = s.qpos[limit.qpos];
    for (int side = 0; side < 2; ++side) {
      const double sign = side == 0 ? -1 : 1;
      const Lane dist = sign * (s.jnt_range[2 * limit.joint + side] - value);
      unsigned hit = Bits(dist < s.jnt_margin[limit.joint]) & kAllLanes;
      if (hit == 0) continue;
      const Lane violation = dist - s.jnt_margin[limit.joint];
      for (; hit != 0; hit &= hit - 1) {
        const int l = __builtin_ctz(hit);
        const int r = rows.count[l]++;
        rows.limit[r - t.num_friction_losses][l] = 2 * k + side;
        At(rows.violation[r], l) = At(violation, l);
      }
    }
  }
}

// One row for the r-th limit of every lane that has so many.
void FillLimitRow(const Tables& t, Scratch& s, int r) {
  Rows& rows = s.rows;
  const unsigned lanes = LanesWithMoreThan(rows.count, r);
  const Mask valid = FromBits(lanes);
  rows.valid[r] = lanes;
  rows.dofs[r] = 0;
  Lane* J = rows.J + r * t.nv;
  for (int i = 0; i < t.nv; ++i) J[i] = Splat(0);
  int softness[kWidth];
  Lane inverse_weight = s.dof_invweight0[t.limit[0].dof];
  for (int l = 0; l < kWidth; ++l) {
    softness[l] = t.limit[0].softness;
    if ((lanes >> l & 1) == 0) continue;
    const int index = rows.limit[r - t.num_friction_losses][l];
    const int side = index % 2;
    const Limit& limit = t.limit[index / 2];
    At(J[limit.dof], l) = side == 0 ? 1 : -1;
    rows.dofs[r] |= uint64_t{1} << limit.dof;
    if (t.several_trees) rows.trees[r][l] = uint64_t{1} << t.dof_tree[limit.dof];
    softness[l] = limit.softness;
    At(inverse_weight, l) = At(s.dof_invweight0[limit.dof], l);
  }
  const LaneSoftness soft(s.softness, softness);
  rows.violation[r] = Select(valid, rows.violation[r], Splat(0));
  rows.impedance[r] = Impedance(soft, rows.violation[r]);
  rows.stiffness[r] = soft.stiffness;
  rows.damping[r] = soft.damping;
  rows.R[r] = Regularizer(rows.impedance[r], inverse_weight);
  rows.D[r] = 1.0 / rows.R[r];
}

}  // namespace

void MakeRows(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  FillFrictionRows(t, s);
  FindLimits(t, s);
  rows.max_count = 0;
  for (int l = 0; l < kWidth; ++l) {
    if (rows.count[l] > rows.max_count) rows.max_count = rows.count[l];
  }
  for (int r = t.num_friction_losses; r < rows.max_count; ++r) FillLimitRow(t, s, r);
  AddContactRows(t, s);
  rows.any = LanesWithMoreThan(rows.count, 0);
}

void ReferenceAcceleration(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  for (int r = 0; r < rows.max_count; ++r) {
    const Mask valid = FromBits(rows.valid[r]);
    Lane* J = rows.J + r * t.nv;
    const Lane velocity = Dot(J, s.qvel, t.nv);
    const Lane aref =
        -rows.damping[r] * velocity - rows.stiffness[r] * rows.impedance[r] * rows.violation[r];
    rows.aref[r] = Select(valid, aref, Splat(0));
    rows.D[r] = Select(valid, rows.D[r], Splat(0));
    if (rows.valid[r] == kAllLanes) continue;
    for (int i = 0; i < t.nv; ++i) J[i] = Select(valid, J[i], Splat(0));
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
