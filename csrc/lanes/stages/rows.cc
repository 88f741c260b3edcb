// Constraint rows of dry friction, joint limits and contacts: mj_makeConstraint,
// mj_referenceConstraint.
//
// Behind the rows of friction, a lane's r-th row is its r-th active limit; contacts' rows begin
// behind the most limits that any lane has. So lanes share rows though they hold different
// constraints.
#include "lanes/stages/blas.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// Softness in lanes, as lanes' constraints may differ.
class LaneSoftness {
 public:
  Lane d0, dwidth, width, midpoint, rise, fall, stiffness, damping;

  // From each lane's index of Scratch::softness.
  LaneSoftness(const Lane* softness, const int* index) {
    Lane r[Softness::kNumbers];
    for (int i = 0; i < Softness::kNumbers; ++i) r[i] = softness[Softness::kNumbers * index[0] + i];
    for (int l = 1; l < kWidth; ++l) {
      if (index[l] == index[0]) continue;
      const Lane* from = softness + Softness::kNumbers * index[l];
      for (int i = 0; i < Softness::kNumbers; ++i) At(r[i], l) = At(from[i], l);
    }
    d0 = r[0], dwidth = r[1], width = r[2], midpoint = r[3];
    rise = r[4], fall = r[5], stiffness = r[6], damping = r[7];
  }
};

// solimp's sigmoid of the violation.
Lane Impedance(const LaneSoftness& soft, Lane violation) {
  const Lane x = Abs(violation / soft.width);
  const Lane low = soft.rise * (x * x);
  const Lane high = 1.0 - soft.fall * ((1.0 - x) * (1.0 - x));
  const Lane y = Select(x <= soft.midpoint, low, high);
  const Lane inside = soft.d0 + y * (soft.dwidth - soft.d0);
  return Select(x >= 1.0, soft.dwidth, Select(x <= 0.0, soft.d0, inside));
}

Lane Regularizer(Lane impedance, Lane inverse_weight) {
  return Max(Splat(kMinVal), (1.0 - impedance) * inverse_weight / impedance);
}

unsigned LanesWithMoreThan(const int* count, int k) {
  unsigned bits = 0;
  for (int l = 0; l < kWidth; ++l) bits |= static_cast<unsigned>(k < count[l]) << l;
  return bits;
}

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

// ---- contacts -----------------------------------------------------------------------------------

// A contact of each lane: what its rows are made of.
struct ContactLanes {
  ContactLanes(const Tables& t, const Scratch& s, int k);

  unsigned lanes;         // that have one
  unsigned pyramids = 0;  // with friction
  Lane friction, margin, inverse_weight;
  int softness[kWidth];
  Word dofs1, dofs2;                   // that move body 1, 2 alone
  uint64_t any_dof1 = 0, any_dof = 0;  // of any lane; of either body
};

ContactLanes::ContactLanes(const Tables& t, const Scratch& s, int k)
    : lanes(LanesWithMoreThan(s.contacts.count, k)) {
  const int some = __builtin_ctz(lanes);
  double weights[kWidth], frictions[kWidth], margins[kWidth];
  long long bits1[kWidth], bits2[kWidth];
  for (int l = 0; l < kWidth; ++l) {
    // lanes without this contact take another's numbers, which then mean nothing
    const bool present = (lanes >> l & 1) != 0;
    const int index = s.contacts.pair[k][present ? l : some];
    const Pair& pair = t.pair[index];
    const Surface& surface = t.surface[pair.surface];
    weights[l] = At(s.pair_inverse_weight[index], l);
    frictions[l] = At(s.pair_friction[index], l);
    margins[l] = surface.margin;
    softness[l] = surface.softness;
    bits1[l] = static_cast<long long>(pair.dofs1);
    bits2[l] = static_cast<long long>(pair.dofs2);
    any_dof1 |= pair.dofs1;
    any_dof |= pair.dofs1 | pair.dofs2;
    pyramids |= static_cast<unsigned>(present && surface.condim == 3) << l;
  }
  __builtin_memcpy(&inverse_weight, weights, sizeof(weights));
  __builtin_memcpy(&friction, frictions, sizeof(frictions));
  __builtin_memcpy(&margin, margins, sizeof(margins));
  __builtin_memcpy(&dofs1, bits1, sizeof(bits1));
  __builtin_memcpy(&dofs2, bits2, sizeof(bits2));
}

// mju_makeFrame: an orthonormal frame from a normal and a wished tangent.
void CompleteFrame(Lane* f) {
  const Lane length = Sqrt(Dot3(f, f));
  const Lane scale = 1.0 / length;
  for (int i = 0; i < 3; ++i) f[i] = f[i] * scale;
  const Mask undefined = Dot3(f + 3, f + 3) < 0.25;
  if (Any(undefined)) {
    const Mask y = (f[1] < 0.5) & (f[1] > -0.5);
    f[3] = Select(undefined, Splat(0), f[3]);
    f[4] = Select(undefined, Select(y, Splat(1), Splat(0)), f[4]);
    f[5] = Select(undefined, Select(y, Splat(0), Splat(1)), f[5]);
  }
  const Lane along = Dot3(f, f + 3);
  for (int i = 0; i < 3; ++i) f[3 + i] = f[3 + i] - f[i] * along;
  const Lane tangent_scale = 1.0 / Sqrt(Dot3(f + 3, f + 3));
  for (int i = 0; i < 3; ++i) f[3 + i] = f[3 + i] * tangent_scale;
  Cross(f + 6, f, f + 3);
}

// The rows' Jacobians: normal velocity, plus and minus friction times the tangential ones.
void ContactJacobian(const Tables& t, const Scratch& s, const ContactLanes& g, int k, int num_rows,
                     Lane* J) {
  const Lane* frame = s.contacts.frame + 9 * k;
  const Mask pyramid = FromBits(g.pyramids);
  const Word dofs = g.dofs1 | g.dofs2;
  Lane arm[3] = {};
  int root = -1;  // of the dofs' tree, whose center of mass motions are about
  for (int i = 0; i < t.nv; ++i) {
    if ((g.any_dof >> i & 1) == 0) {
      for (int q = 0; q < num_rows; ++q) J[q * t.nv + i] = Splat(0);
      continue;
    }
    if (const int root_of_dof = t.body[t.dof[i].body].root; root != root_of_dof) {
      root = root_of_dof;
      for (int q = 0; q < 3; ++q) arm[q] = s.contacts.pos[3 * k + q] - s.subtree_com[3 * root + q];
    }
    const Lane* motion = s.cdof + 6 * i;
    Lane moved[3];  // the point's velocity on body 2 less that on body 1
    Cross(moved, motion, arm);
    for (int q = 0; q < 3; ++q) moved[q] = motion[3 + q] + moved[q];
    if ((g.any_dof1 >> i & 1) != 0) {
      const Mask negative = HasBit(g.dofs1, i);
      for (int q = 0; q < 3; ++q) moved[q] = Select(negative, 0.0 - moved[q], moved[q]);
    }
    const Mask moves = HasBit(dofs, i);
    for (int q = 0; q < 3; ++q) moved[q] = Select(moves, moved[q], Splat(0));
    // MuJoCo's sums begin at zero, so that none is a negative zero
    const Lane normal = Dot3(frame, moved) + 0.0;
    if (num_rows == 1) {
      J[i] = normal;
      continue;
    }
    const Lane tangent1 = Dot3(frame + 3, moved) + 0.0, tangent2 = Dot3(frame + 6, moved) + 0.0;
    J[i] = Select(pyramid, normal + tangent1 * g.friction, normal);
    J[t.nv + i] = normal + tangent1 * -g.friction;
    J[2 * t.nv + i] = normal + tangent2 * g.friction;
    J[3 * t.nv + i] = normal + tangent2 * -g.friction;
  }
}

void FillContactRows(const Tables& t, Scratch& s, int k, const ContactLanes& g) {
  Rows& rows = s.rows;
  Contacts& c = s.contacts;
  CompleteFrame(c.frame + 9 * k);
  const Lane violation = c.dist[k] - g.margin;
  const LaneSoftness soft(s.softness, g.softness);
  const Lane impedance = Impedance(soft, violation);
  const Lane R_normal = Regularizer(impedance, g.inverse_weight);
  Lane mu = g.friction;  // of the regularized cone
  if (t.impratio != 1) {
    const Lane R_tangent = R_normal / (t.impratio > kMinVal ? t.impratio : kMinVal);
    mu = g.friction * Sqrt(R_tangent / R_normal);
  }
  const Lane R = Select(FromBits(g.pyramids), 2.0 * mu * mu * R_normal, R_normal);
  const Lane D = 1.0 / R;
  const int first = c.first_row[k];
  ContactJacobian(t, s, g, k, c.num_rows[k], rows.J + first * t.nv);
  for (int r = first; r < first + c.num_rows[k]; ++r) {
    rows.valid[r] = r == first ? g.lanes : g.pyramids;
    rows.dofs[r] = g.any_dof;
    rows.violation[r] = violation;
    rows.impedance[r] = impedance;
    rows.stiffness[r] = soft.stiffness;
    rows.damping[r] = soft.damping;
    rows.R[r] = R;
    rows.D[r] = D;
  }
  if (!t.several_trees) return;
  for (int l = 0; l < kWidth; ++l) {
    if (k >= c.count[l]) continue;
    const uint64_t trees = t.pair[c.pair[k][l]].trees;
    for (int r = first; r < first + c.num_rows[k]; ++r) rows.trees[r][l] = trees;
  }
}

}  // namespace

void MakeRows(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  Contacts& c = s.contacts;
  FillFrictionRows(t, s);
  FindLimits(t, s);
  rows.max_count = 0;
  for (int l = 0; l < kWidth; ++l) {
    if (rows.count[l] > rows.max_count) rows.max_count = rows.count[l];
  }
  for (int r = t.num_friction_losses; r < rows.max_count; ++r) FillLimitRow(t, s, r);
  for (int k = 0; k < c.max_count; ++k) {
    const ContactLanes g(t, s, k);
    c.first_row[k] = rows.max_count;
    c.num_rows[k] = g.pyramids != 0 ? 4 : 1;
    FillContactRows(t, s, k, g);
    rows.max_count += c.num_rows[k];
    for (int l = 0; l < kWidth; ++l) {
      if ((g.lanes >> l & 1) != 0) rows.count[l] += (g.pyramids >> l & 1) != 0 ? 4 : 1;
    }
  }
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
