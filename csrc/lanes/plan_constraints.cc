// A plan's tables of equalities, dry friction and limits.
#include <algorithm>

#include "lanes/features.h"
#include "lanes/model_trees.h"
#include "lanes/plan.h"

namespace pyfastenv::lanes {

namespace {

bool Turns(const mjModel& m, int site) {
  return m.site_sameframe[site] != mjSAMEFRAME_BODY &&
         m.site_sameframe[site] != mjSAMEFRAME_BODYROT;
}

// `with_dofs`: lanes make its rows. `own_coefficients`: of TreesOfTendon.
Equality MakeEquality(const mjModel& m, int i, bool with_dofs, bool own_coefficients) {
  Equality e{};
  const int object1 = m.eq_obj1id[i], object2 = m.eq_obj2id[i];
  std::copy_n(m.eq_data + ptrdiff_t{mjNEQDATA} * i, Equality::kData, e.data);
  if (m.eq_type[i] == mjEQ_JOINT || m.eq_type[i] == mjEQ_TENDON) {
    const bool joints = m.eq_type[i] == mjEQ_JOINT;
    e.kind = joints ? EqualityKind::kJoint : EqualityKind::kTendon;
    e.num_rows = 1;
    e.object1 = object1;
    e.object2 = object2;
    for (const int object : {object1, object2}) {
      if (object < 0) continue;
      e.trees |=
          joints ? TreeOf(m, m.jnt_bodyid[object]) : TreesOfTendon(m, object, own_coefficients);
      if (joints) continue;
      (object == object1 ? e.length1 : e.length2) = m.tendon_length0[object];
      e.tendon_inverse_weight += m.tendon_invweight0[object];
    }
    return e;
  }
  e.kind = m.eq_type[i] == mjEQ_WELD ? EqualityKind::kWeld : EqualityKind::kConnect;
  e.num_rows = e.kind == EqualityKind::kWeld ? 6 : 3;
  e.sites = m.eq_objtype[i] == mjOBJ_SITE;
  e.body1 = object1;
  e.body2 = object2;
  if (e.sites) {
    e.site1 = object1;
    e.site2 = object2;
    e.site1_turns = Turns(m, object1);
    e.site2_turns = Turns(m, object2);
    e.body1 = m.site_bodyid[object1];
    e.body2 = m.site_bodyid[object2];
  }
  if (with_dofs) {
    e.dofs1 = MaskOf(DofsThatMove(m, e.body1));
    e.dofs2 = MaskOf(DofsThatMove(m, e.body2));
  }
  e.trees = TreeOf(m, e.body1) | TreeOf(m, e.body2);
  return e;
}

}  // namespace

void Plan::AddEqualities(const mjModel& m) {
  if (IsOff(m, mjDSBL_CONSTRAINT) || IsOff(m, mjDSBL_EQUALITY)) return;
  Tables& t = tables_;
  for (int i = 0; i < m.neq; ++i) {
    Equality e = MakeEquality(m, i, !t.asks_for_constraints, t.Varies(Number::wrap_prm));
    e.first_row = t.num_equality_rows;
    t.num_equality_rows += e.num_rows;
    e.softness = derivation_.AddFixedSoftness(t, m.eq_solref + ptrdiff_t{mjNREF} * i,
                                              m.eq_solimp + ptrdiff_t{mjNIMP} * i);
    t.constrains_tendons |= e.kind == EqualityKind::kTendon;
    t.has_frame_equalities |= e.kind == EqualityKind::kConnect || e.kind == EqualityKind::kWeld;
    equalities_.push_back(e);
  }
  t.equality = equalities_.data();
  t.num_equalities = static_cast<int>(equalities_.size());
}

void Plan::AddFrictionLosses(const mjModel& m) {
  const bool off = IsOff(m, mjDSBL_CONSTRAINT) || IsOff(m, mjDSBL_FRICTIONLOSS);
  for (int i = 0; i < m.nv && !off; ++i) {
    if (m.dof_frictionloss[i] == 0) continue;
    friction_losses_.push_back({i, -1, derivation_.AddDofSoftness(tables_, i), 0, 0});
  }
  for (int i = 0; i < m.ntendon && !off; ++i) {
    if (m.tendon_frictionloss[i] <= 0 || TreesOfTendon(m, i, tables_.Varies(Number::wrap_prm)) == 0)
      continue;
    const int softness =
        derivation_.AddFixedSoftness(tables_, m.tendon_solref_fri + ptrdiff_t{mjNREF} * i,
                                     m.tendon_solimp_fri + ptrdiff_t{mjNIMP} * i);
    friction_losses_.push_back({-1, i, softness, m.tendon_frictionloss[i], m.tendon_invweight0[i]});
    tables_.constrains_tendons = true;
  }
  tables_.friction_loss = friction_losses_.data();
  tables_.num_friction_losses = static_cast<int>(friction_losses_.size());
}

void Plan::AddLimits(const mjModel& m) {
  const bool off = IsOff(m, mjDSBL_CONSTRAINT) || IsOff(m, mjDSBL_LIMIT);
  for (int j = 0; j < m.njnt && !off; ++j) {
    if (!m.jnt_limited[j]) continue;
    const int dof = m.jnt_dofadr[j];
    Limit limit{};
    limit.kind = m.jnt_type[j] == mjJNT_BALL ? LimitKind::kBall : LimitKind::kPosition;
    limit.qpos = m.jnt_qposadr[j];
    limit.dof = dof;
    limit.joint = j;
    limit.softness = derivation_.AddJointSoftness(tables_, j);
    limit.trees = TreeOf(m, m.jnt_bodyid[j]);
    limits_.push_back(limit);
  }
  for (int i = 0; i < m.ntendon && !off; ++i) {
    const uint64_t trees = TreesOfTendon(m, i, tables_.Varies(Number::wrap_prm));
    if (!m.tendon_limited[i] || trees == 0) continue;
    Limit limit{};
    limit.kind = LimitKind::kTendon;
    limit.tendon = i;
    limit.trees = trees;
    limit.softness =
        derivation_.AddFixedSoftness(tables_, m.tendon_solref_lim + ptrdiff_t{mjNREF} * i,
                                     m.tendon_solimp_lim + ptrdiff_t{mjNIMP} * i);
    std::copy_n(m.tendon_range + ptrdiff_t{2} * i, 2, limit.range);
    limit.margin = m.tendon_margin[i];
    limit.inverse_weight = m.tendon_invweight0[i];
    limits_.push_back(limit);
    tables_.constrains_tendons = true;
  }
  tables_.limit = limits_.data();
  tables_.num_limits = static_cast<int>(limits_.size());
}

}  // namespace pyfastenv::lanes
