// Rows of equalities between joints, tendons, points and frames: mj_instantiateEquality.
#include "lanes/stages/blas.h"
#include "lanes/stages/rows.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void TiedPoint(const Scratch& s, const Equality& e, bool first, Lane* pos) {
  if (e.sites) {
    const Lane* site = s.site_xpos + 3 * (first ? e.site1 : e.site2);
    for (int i = 0; i < 3; ++i) pos[i] = site[i];
    return;
  }
  const int body = first ? e.body1 : e.body2;
  // welds keep the second's anchor first
  const double* anchor = e.data + (first == (e.kind == EqualityKind::kConnect) ? 0 : 3);
  Rotate(pos, s.xmat + 9 * body, anchor);
  for (int i = 0; i < 3; ++i) pos[i] = pos[i] + s.xpos[3 * body + i];
}

namespace {

// ---- quaternions, in the order of the binary ----------------------------------------------------

// r = q (0, axis)
void MulQuatAxis(Lane* r, const Lane* q, const Lane* a) {
  const Lane w = -q[1] * a[0] - q[2] * a[1] - q[3] * a[2];
  const Lane x = (q[0] * a[0] - q[3] * a[1]) + q[2] * a[2];
  const Lane y = (q[3] * a[0] + q[0] * a[1]) - q[1] * a[2];
  const Lane z = (q[1] * a[1] - q[2] * a[0]) + q[0] * a[2];
  r[0] = w, r[1] = x, r[2] = y, r[3] = z;
}

// How q changes where it turns with the angular velocity v.
void DerivativeOfQuat(Lane* r, const Lane* q, const Lane* v) {
  r[0] = 0.5 * (-v[0] * q[1] - v[1] * q[2] - v[2] * q[3]);
  r[1] = 0.5 * (v[0] * q[0] + v[1] * q[3] - v[2] * q[2]);
  r[2] = 0.5 * (v[1] * q[0] - v[0] * q[3] + v[2] * q[1]);
  r[3] = 0.5 * (v[0] * q[2] - v[1] * q[1] + v[2] * q[0]);
}

void Conjugate(Lane* q) {
  for (int i = 1; i < 4; ++i) q[i] = -q[i];
}

// ---- points and frames --------------------------------------------------------------------------

// One of the two things that are tied.
struct End {
  int body;
  uint64_t dofs;
  Lane pos[3];
};

End MakeEnd(const Scratch& s, const Equality& e, bool first) {
  End end{first ? e.body1 : e.body2, first ? e.dofs1 : e.dofs2, {}};
  TiedPoint(s, e, first, end.pos);
  return end;
}

// The quaternion of a site: its body's by site_quat, of which a `placed` site that does not turn
// asks nothing, though it may be -1. MuJoCo takes the one for rows and the other for their bias.
void SiteQuat(const Scratch& s, const Lane* body, int site, bool placed, Lane* quat) {
  if (!placed) return MulQuat(quat, body, s.site_quat + 4 * site);
  for (int i = 0; i < 4; ++i) quat[i] = body[i];
}

// Quaternions of both frames; of the first at its wished place relative to the second.
void Orientations(const Scratch& s, const Equality& e, bool placed, Lane* quat1, Lane* quat2) {
  const Lane *body1 = s.xquat + 4 * e.body1, *body2 = s.xquat + 4 * e.body2;
  if (e.sites) {
    SiteQuat(s, body1, e.site1, placed && !e.site1_turns, quat1);
    SiteQuat(s, body2, e.site2, placed && !e.site2_turns, quat2);
    return;
  }
  MulQuat(quat1, body1, e.data + 6);
  for (int i = 0; i < 4; ++i) quat2[i] = body2[i];
}

// The velocity (3) and turning velocity (3) of a point by one dof.
void PointMotion(const Tables& t, const Scratch& s, const End& end, int dof, Lane* motion) {
  for (int i = 0; i < 6; ++i) motion[i] = Splat(0);
  if ((end.dofs >> dof & 1) == 0) return;
  const Lane* com = s.subtree_com + 3 * t.body[end.body].root;
  const Lane* cdof = s.cdof + 6 * dof;
  Lane arm[3];
  for (int i = 0; i < 3; ++i) arm[i] = end.pos[i] - com[i];
  Cross(motion, cdof, arm);
  for (int i = 0; i < 3; ++i) {
    motion[i] = cdof[3 + i] + motion[i];
    motion[3 + i] = cdof[i];
  }
}

// Positions and Jacobian of a connect's three rows, or a weld's six.
void FrameRows(const Tables& t, const Scratch& s, const Equality& e, Lane* pos, Lane* J) {
  const bool weld = e.kind == EqualityKind::kWeld;
  const double scale = e.data[10];
  const End end1 = MakeEnd(s, e, true), end2 = MakeEnd(s, e, false);
  for (int i = 0; i < 3; ++i) pos[i] = end1.pos[i] - end2.pos[i];
  Lane quat1[4], back2[4], error[4];
  if (weld) {
    Orientations(s, e, /*placed=*/true, quat1, back2);
    Conjugate(back2);
    MulQuat(error, back2, quat1);
    for (int i = 0; i < 3; ++i) pos[3 + i] = error[1 + i] * scale;
  }
  for (int dof = 0; dof < t.nv; ++dof) {
    Lane motion1[6], motion2[6], difference[6];
    PointMotion(t, s, end1, dof, motion1);
    PointMotion(t, s, end2, dof, motion2);
    for (int i = 0; i < 6; ++i) difference[i] = motion1[i] - motion2[i];
    for (int i = 0; i < 3; ++i) J[i * t.nv + dof] = difference[i];
    if (!weld) continue;
    Lane half[4], whole[4];
    MulQuatAxis(half, back2, difference + 3);
    MulQuat(whole, half, quat1);
    for (int i = 0; i < 3; ++i) J[(3 + i) * t.nv + dof] = (0.5 * whole[1 + i]) * scale;
  }
}

// ---- joints and tendons -------------------------------------------------------------------------

// How far a joint or tendon is from where the model has it, and its row of the Jacobian.
Lane Displacement(const Tables& t, const Scratch& s, const Equality& e, bool first, Lane* J) {
  const int object = first ? e.object1 : e.object2;
  if (e.kind == EqualityKind::kTendon) {
    TendonRow(t, s, object, J);
    return s.ten_length[object] - (first ? e.length1 : e.length2);
  }
  const Joint& joint = t.joint[object];
  for (int i = 0; i < t.nv; ++i) J[i] = Splat(i == joint.dof);
  return s.qpos[joint.qpos] - s.qpos0[joint.qpos];
}

void ScalarRow(const Tables& t, const Scratch& s, const Equality& e, Lane* pos, Lane* J) {
  const double* c = e.data;
  *pos = Displacement(t, s, e, true, J) - c[0];
  if (e.object2 < 0) return;
  Lane J2[kMaxDofs];
  const Lane d = Displacement(t, s, e, false, J2);
  *pos = *pos - (c[1] * d + c[2] * d * d + c[3] * d * d * d + c[4] * d * d * d * d);
  const Lane slope = c[1] + 2 * c[2] * d + 3 * c[3] * d * d + 4 * c[4] * d * d * d;
  for (int i = 0; i < t.nv; ++i) J[i] = J[i] + J2[i] * -slope;
}

uint64_t DofsOf(const Tables& t, const Equality& e) {
  if (e.num_rows > 1) return e.dofs1 | e.dofs2;
  const auto of_object = [&](int object) {
    if (object < 0) return uint64_t{0};
    if (e.kind == EqualityKind::kTendon) return DofsOfTendon(t, object);
    return uint64_t{1} << t.joint[object].dof;
  };
  return of_object(e.object1) | of_object(e.object2);
}

// ---- all ----------------------------------------------------------------------------------------

void FillRows(const Tables& t, Scratch& s, const Equality& e, const Lane* inverse_weight,
              unsigned active) {
  Rows& rows = s.rows;
  const int first = e.first_row;
  Lane* pos = rows.violation + first;
  Lane* J = rows.J + first * t.nv;
  if (e.num_rows == 1) {
    ScalarRow(t, s, e, pos, J);
  } else {
    FrameRows(t, s, e, pos, J);
  }
  const Lane size = e.num_rows == 1 ? *pos : Sqrt(Dot(pos, pos, e.num_rows));
  int softness[kWidth];
  for (int l = 0; l < kWidth; ++l) softness[l] = e.softness;
  const LaneSoftness soft(s.softness, softness);
  const Lane impedance = Impedance(soft, size);
  const unsigned valid = active & LanesThatAct(J, e.num_rows * t.nv);
  for (int r = first; r < first + e.num_rows; ++r) {
    rows.valid[r] = valid;
    rows.dofs[r] = DofsOf(t, e);
    rows.impedance[r] = impedance;
    rows.stiffness[r] = soft.stiffness;
    rows.damping[r] = soft.damping;
    rows.R[r] = Regularizer(impedance, inverse_weight[r - first < 3 ? 0 : 1]);
    rows.D[r] = 1.0 / rows.R[r];
    if (!t.several_trees) continue;
    if (e.num_rows == 1) {
      SetTreesByJacobian(t, rows, r);  // as MuJoCo does
    } else {
      for (int l = 0; l < kWidth; ++l) rows.trees[r][l] = e.trees;
    }
  }
}

// ---- what velocities change of the Jacobians ----------------------------------------------------

// A point's acceleration (3) and turning acceleration (3) at constant velocities of dofs.
void PointBias(const Tables& t, const Scratch& s, const End& end, Lane* bias) {
  const Lane* com = s.subtree_com + 3 * t.body[end.body].root;
  const Lane* cvel = s.cvel + 6 * end.body;
  Lane arm[3], lever[3], velocity[3], J[6 * kMaxDofs];
  for (int i = 0; i < 3; ++i) arm[i] = end.pos[i] - com[i];
  Cross(lever, arm, cvel);
  for (int i = 0; i < 3; ++i) velocity[i] = cvel[3 + i] - lever[i];
  for (int dof = 0; dof < t.nv; ++dof) {
    for (int i = 0; i < 6; ++i) J[i * t.nv + dof] = Splat(0);
    if ((end.dofs >> dof & 1) == 0) continue;
    Lane derivative[6], turned[3], moved[3];
    if (t.dof[dof].turns) {  // with the body
      CrossMotion(derivative, s.cvel + 6 * t.dof[dof].body, s.cdof + 6 * dof);
    } else {
      for (int i = 0; i < 6; ++i) derivative[i] = s.cdof_dot[6 * dof + i];
    }
    Cross(turned, derivative, arm);
    Cross(moved, s.cdof + 6 * dof, velocity);
    for (int i = 0; i < 3; ++i) {
      J[i * t.nv + dof] = derivative[3 + i] + turned[i] + moved[i];
      J[(3 + i) * t.nv + dof] = derivative[i];
    }
  }
  for (int i = 0; i < 6; ++i) bias[i] = Dot(J + i * t.nv, s.qvel, t.nv);
}

// The second derivative of a weld's error in rotation, at constant velocities of dofs.
void RotationBias(const Scratch& s, const Equality& e, const Lane* turning, Lane* bias) {
  Lane quat1[4], back2[4], rate1[4], rate2[4], relative[3];
  Orientations(s, e, /*placed=*/false, quat1, back2);
  const Lane *velocity1 = s.cvel + 6 * e.body1, *velocity2 = s.cvel + 6 * e.body2;
  if (e.sites) {
    DerivativeOfQuat(rate1, quat1, velocity1);
  } else {
    Lane rate[4];
    DerivativeOfQuat(rate, s.xquat + 4 * e.body1, velocity1);
    MulQuat(rate1, rate, e.data + 6);
  }
  DerivativeOfQuat(rate2, back2, velocity2);
  Conjugate(back2);
  Conjugate(rate2);
  for (int i = 0; i < 3; ++i) relative[i] = velocity1[i] - velocity2[i];
  const auto product = [](Lane* r, const Lane* a, const Lane* axis, const Lane* b) {
    Lane half[4];
    MulQuatAxis(half, a, axis);
    MulQuat(r, half, b);
  };
  Lane term1[4], term2[4], term3[4];
  product(term1, rate2, relative, quat1);
  product(term2, back2, turning, quat1);
  product(term3, back2, relative, rate1);
  for (int i = 0; i < 3; ++i) {
    bias[i] = 0.5 * (term1[1 + i] + term2[1 + i] + term3[1 + i]) * e.data[10];
  }
}

}  // namespace

void WeldTorque(const Scratch& s, const Equality& e, Lane* torque) {
  Lane back1[4], quat2[4], half[4], whole[4];
  Orientations(s, e, /*placed=*/false, back1, quat2);
  Conjugate(back1);
  MulQuatAxis(half, quat2, s.rows.force + e.first_row + 3);
  MulQuat(whole, half, back1);
  for (int i = 0; i < 3; ++i) torque[i] = whole[1 + i] * (0.5 * e.data[10]);
}

void FillEqualityRows(const Tables& t, Scratch& s) {
  for (int k = 0; k < t.num_equalities; ++k) {
    FillRows(t, s, t.equality[k], s.equality_inverse_weight + 2 * k, s.equality_active[k]);
  }
}

void SubtractEqualityBias(const Tables& t, Scratch& s) {
  for (int k = 0; k < t.num_equalities; ++k) {
    const Equality& e = t.equality[k];
    if (e.num_rows == 1 || s.rows.valid[e.first_row] == 0) continue;
    Lane bias1[6], bias2[6], bias[6];
    PointBias(t, s, MakeEnd(s, e, true), bias1);
    PointBias(t, s, MakeEnd(s, e, false), bias2);
    for (int i = 0; i < 6; ++i) bias[i] = bias1[i] - bias2[i];
    if (e.kind == EqualityKind::kWeld) RotationBias(s, e, bias + 3, bias + 3);
    const Mask valid = FromBits(s.rows.valid[e.first_row]);
    for (int i = 0; i < e.num_rows; ++i) {
      Lane& aref = s.rows.aref[e.first_row + i];
      aref = Select(valid, aref - bias[i], Splat(0));
    }
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
