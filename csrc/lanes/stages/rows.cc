// Constraint rows: mj_makeConstraint, mj_referenceConstraint. Here those of dry friction and of
// limits.
//
// Behind the rows of equalities and friction, a lane's k-th row is its k-th active limit; contacts'
// rows begin behind the most limits that any lane has. So lanes share rows though they hold
// different constraints.
#include "lanes/stages/rows.h"

#include "lanes/stages/jacobian.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"
#include "lanes/stages/turns.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void TendonRow(const Tables& t, const Scratch& s, int tendon, Lane* J) {
  const int begin = t.ten_J.rowadr[tendon], end = begin + t.ten_J.rownnz[tendon];
  for (int i = 0; i < t.nv; ++i) J[i] = Splat(0);
  for (int k = begin; k < end; ++k) J[t.ten_J.colind[k]] = s.ten_J[k];
}

uint64_t DofsOfTendon(const Tables& t, int tendon) {
  uint64_t dofs = 0;
  const int begin = t.ten_J.rowadr[tendon], end = begin + t.ten_J.rownnz[tendon];
  for (int k = begin; k < end; ++k) dofs |= uint64_t{1} << t.ten_J.colind[k];
  return dofs;
}

uint64_t TreesByJacobian(const Tables& t, const Rows& rows, int r, int lane) {
  uint64_t trees = 0;
  for (int i = 0; i < t.nv; ++i) {
    if (At(rows.J[r * t.nv + i], lane) != 0) trees |= uint64_t{1} << t.dof_tree[i];
  }
  return trees;
}

void SetTreesByJacobian(const Tables& t, Rows& rows, int r) {
  for (int l = 0; l < kWidth; ++l) rows.trees[r][l] = TreesByJacobian(t, rows, r, l);
}

namespace {

// ---- dry friction -------------------------------------------------------------------------------

void FillFrictionRows(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  for (int k = 0; k < t.num_friction_losses; ++k) {
    const FrictionLoss& loss = t.friction_loss[k];
    const int r = t.num_equality_rows + k;
    const bool of_tendon = loss.tendon >= 0;
    const uint64_t dofs = of_tendon ? DofsOfTendon(t, loss.tendon) : uint64_t{1} << loss.dof;
    // a dof's row is the same in every step, and nobody else writes there
    if (!of_tendon && t.varied == 0 && rows.dofs[r] == dofs) continue;
    rows.valid[r] = kAllLanes;
    rows.dofs[r] = dofs;
    Lane* J = rows.J + r * t.nv;
    if (of_tendon) {
      TendonRow(t, s, loss.tendon, J);
      s.redo |= ~LanesThatAct(J, t.nv) & kAllLanes;
    } else {
      for (int i = 0; i < t.nv; ++i) J[i] = Splat(i == loss.dof);
    }
    if (t.several_trees) SetTreesByJacobian(t, rows, r);
    int softness[kWidth];
    for (int l = 0; l < kWidth; ++l) softness[l] = loss.softness;
    const LaneSoftness soft(s.softness, softness);
    rows.violation[r] = Splat(0);
    rows.impedance[r] = Impedance(soft, rows.violation[r]);
    rows.stiffness[r] = Splat(0);
    rows.damping[r] = soft.damping;
    const Lane inverse_weight =
        of_tendon ? Splat(loss.tendon_inverse_weight) : s.dof_invweight0[loss.dof];
    rows.R[r] = Regularizer(rows.impedance[r], inverse_weight);
    rows.D[r] = 1.0 / rows.R[r];
  }
}

// ---- limits -------------------------------------------------------------------------------------

// The angle that a ball is turned by, and the axis.
Lane BallAngle(const Scratch& s, int qpos, Lane* axis) {
  Lane quat[4];
  for (int i = 0; i < 4; ++i) quat[i] = s.qpos[qpos + i];
  Normalize4(quat);
  QuatToTurn(axis, quat);
  return Normalize3(axis);
}

// A row for those of the lanes in which a limit is near; `index`: 2 * limit + side.
void AddLimit(const Tables& t, Rows& rows, int* near, int index, Lane dist, Lane margin,
              unsigned lanes = kAllLanes) {
  unsigned hit = Bits(dist < margin) & lanes;
  if (hit == 0) return;
  const Lane violation = dist - margin;
  for (; hit != 0; hit &= hit - 1) {
    const int l = __builtin_ctz(hit);
    const int k = near[l]++;
    rows.limit[k][l] = index;
    At(rows.violation[FirstInequality(t) + k], l) = At(violation, l);
  }
}

// `near`: how many limits each lane has.
void FindLimits(const Tables& t, Scratch& s, int* near) {
  Rows& rows = s.rows;
  for (int k = 0; k < t.num_limits; ++k) {
    const Limit& limit = t.limit[k];
    const bool of_tendon = limit.kind == LimitKind::kTendon;
    const Lane fixed_range[2] = {Splat(limit.range[0]), Splat(limit.range[1])};
    const Lane* range = of_tendon ? fixed_range : s.jnt_range + 2 * limit.joint;
    const Lane margin = of_tendon ? Splat(limit.margin) : s.jnt_margin[limit.joint];
    if (limit.kind == LimitKind::kBall) {
      const Lane angle = BallAngle(s, limit.qpos, s.limit_axis + 3 * k);
      AddLimit(t, rows, near, 2 * k, Max(range[0], range[1]) - angle, margin);
      continue;
    }
    const Lane value = of_tendon ? s.ten_length[limit.tendon] : s.qpos[limit.qpos];
    unsigned lanes = kAllLanes;
    if (of_tendon) {
      lanes = LanesThatAct(s.ten_J + t.ten_J.rowadr[limit.tendon], t.ten_J.rownnz[limit.tendon]);
    }
    for (int side = 0; side < 2; ++side) {
      const double sign = side == 0 ? -1 : 1;
      AddLimit(t, rows, near, 2 * k + side, sign * (range[side] - value), margin, lanes);
    }
  }
}

// Adds a limit's entries of the Jacobian in one lane.
void AddLimitJacobian(const Tables& t, const Scratch& s, int index, int l, int r) {
  const Limit& limit = t.limit[index / 2];
  Lane* J = s.rows.J + r * t.nv + limit.dof;
  const double sign = index % 2 == 0 ? 1 : -1;
  if (limit.kind == LimitKind::kPosition) {
    s.rows.dofs[r] |= uint64_t{1} << limit.dof;
    At(*J, l) = sign;
  } else if (limit.kind == LimitKind::kBall) {
    s.rows.dofs[r] |= uint64_t{7} << limit.dof;
    const Lane* axis = s.limit_axis + 3 * (index / 2);
    for (int i = 0; i < 3; ++i) At(J[i], l) = At(axis[i], l) * -1;
  } else {
    s.rows.dofs[r] |= DofsOfTendon(t, limit.tendon);
    const int begin = t.ten_J.rowadr[limit.tendon], end = begin + t.ten_J.rownnz[limit.tendon];
    for (int k = begin; k < end; ++k) {
      At(s.rows.J[r * t.nv + t.ten_J.colind[k]], l) = At(s.ten_J[k], l) * sign;
    }
  }
}

// One row for the k-th limit of every lane that has so many.
void FillLimitRow(const Tables& t, Scratch& s, const int* near, int k) {
  Rows& rows = s.rows;
  const int r = FirstInequality(t) + k;
  const unsigned lanes = LanesWithMoreThan(near, k);
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
    const int index = rows.limit[k][l];
    const Limit& limit = t.limit[index / 2];
    AddLimitJacobian(t, s, index, l, r);
    if (t.several_trees) {
      const bool of_tendon = limit.kind == LimitKind::kTendon;
      rows.trees[r][l] = of_tendon ? TreesByJacobian(t, rows, r, l) : limit.trees;
    }
    softness[l] = limit.softness;
    At(inverse_weight, l) = limit.kind == LimitKind::kTendon ? limit.inverse_weight
                                                             : At(s.dof_invweight0[limit.dof], l);
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
  FillEqualityRows(t, s);
  FillFrictionRows(t, s);
  int near[kWidth] = {}, max_near = 0;
  FindLimits(t, s, near);
  for (int l = 0; l < kWidth; ++l) {
    if (near[l] > max_near) max_near = near[l];
    rows.count[l] = t.num_friction_losses + near[l];
    for (int r = 0; r < t.num_equality_rows; ++r) rows.count[l] += rows.valid[r] >> l & 1;
  }
  for (int k = 0; k < max_near; ++k) FillLimitRow(t, s, near, k);
  rows.max_count = FirstInequality(t) + max_near;
  AddContactRows(t, s);
  rows.any = LanesWithMoreThan(rows.count, 0);
}

void ReferenceAcceleration(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  for (int r = 0; r < rows.max_count; ++r) {
    const Mask valid = FromBits(rows.valid[r]);
    Lane* J = rows.J + r * t.nv;
    const Lane velocity = RowProduct(J, rows.dofs[r], s.qvel, t.nv);
    const Lane aref =
        -rows.damping[r] * velocity - rows.stiffness[r] * rows.impedance[r] * rows.violation[r];
    rows.aref[r] = Select(valid, aref, Splat(0));
    rows.D[r] = Select(valid, rows.D[r], Splat(0));
    if (rows.valid[r] == kAllLanes) continue;
    for (int i = 0; i < t.nv; ++i) J[i] = Select(valid, J[i], Splat(0));
  }
  if (t.has_frame_equalities) SubtractEqualityBias(t, s);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
