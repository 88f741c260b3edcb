// Contacts' constraint rows: mj_instantiateContact.
//
// A contact has one row without friction; a pyramidal cone two for each direction of friction; an
// elliptic one the normal's and one for each direction. Those that the cone has not in some lane
// are not valid there.
#include "lanes/stages/rows.h"
#include "lanes/stages/touches.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// A contact of each lane: what its rows are made of.
struct ContactLanes {
  ContactLanes(const Tables& t, const Scratch& s, int k);

  unsigned lanes;           // that have one
  unsigned frictional = 0;  // with friction
  int condim = 1;           // the greatest
  int least_condim = 6;
  int condims[kWidth];  // 0 without a contact
  Lane friction[kFrictions] = {};
  Lane margin, inverse_weight;
  int softness[kWidth];
  Word dofs1, dofs2;                   // that move body 1, 2 alone
  uint64_t any_dof1 = 0, any_dof = 0;  // of any lane; of either body

  int RowsIn(const Tables& t, int l) const { return RowsOfContact(t, condims[l]); }
};

ContactLanes::ContactLanes(const Tables& t, const Scratch& s, int k)
    : lanes(LanesWithMoreThan(s.contacts.count, k)) {
  const int some = __builtin_ctz(lanes);
  double weights[kWidth], margins[kWidth];
  long long bits1[kWidth], bits2[kWidth];
  for (int l = 0; l < kWidth; ++l) {
    // lanes without this contact take another's numbers, which then mean nothing
    const bool present = (lanes >> l & 1) != 0;
    const int index = s.contacts.pair[k][present ? l : some];
    const Pair& pair = t.pair[index];
    const Surface& surface = t.surface[pair.surface];
    weights[l] = At(s.pair_inverse_weight[index], l);
    for (int i = 0; i < surface.condim - 1; ++i) {
      At(friction[i], l) = At(s.pair_friction[kFrictions * index + i], l);
    }
    margins[l] = At(LimitOf(t, s, PairLimit::kMargin, index), l);
    softness[l] = surface.softness;
    bits1[l] = static_cast<long long>(pair.dofs1);
    bits2[l] = static_cast<long long>(pair.dofs2);
    any_dof1 |= pair.dofs1;
    any_dof |= pair.dofs1 | pair.dofs2;
    condims[l] = present ? surface.condim : 0;
    if (condims[l] > condim) condim = condims[l];
    if (present && condims[l] < least_condim) least_condim = condims[l];
    frictional |= static_cast<unsigned>(condims[l] > 1) << l;
  }
  __builtin_memcpy(&inverse_weight, weights, sizeof(weights));
  __builtin_memcpy(&margin, margins, sizeof(margins));
  __builtin_memcpy(&dofs1, bits1, sizeof(bits1));
  __builtin_memcpy(&dofs2, bits2, sizeof(bits2));
}

// Of one dof: the contact point's velocity on body 2 less that on body 1, in the contact's frame,
// then the turning velocity: the first kCount of the six.
template <int kCount>
inline void RelativeMotion(const Lane* frame, const Lane* motion, const Lane* arm,
                           const ContactLanes& g, int dof, Lane* relative) {
  const Mask moves = HasBit(g.dofs1 | g.dofs2, dof);
  const auto difference = [&](Lane* velocity) {
    if ((g.any_dof1 >> dof & 1) != 0) {
      const Mask negative = HasBit(g.dofs1, dof);
      for (int q = 0; q < 3; ++q) velocity[q] = Select(negative, 0.0 - velocity[q], velocity[q]);
    }
    for (int q = 0; q < 3; ++q) velocity[q] = Select(moves, velocity[q], Splat(0));
  };
  Lane moved[3];
  Cross(moved, motion, arm);
  for (int q = 0; q < 3; ++q) moved[q] = motion[3 + q] + moved[q];
  difference(moved);
  // MuJoCo's sums begin at zero, so that none is a negative zero
  for (int k = 0; k < (kCount == 1 ? 1 : 3); ++k) relative[k] = Dot3(frame + 3 * k, moved) + 0.0;
  if constexpr (kCount > 3) {
    Lane turned[3] = {motion[0], motion[1], motion[2]};
    difference(turned);
    for (int k = 3; k < kCount; ++k) relative[k] = Dot3(frame + 3 * (k - 3), turned) + 0.0;
  }
}

// The rows' Jacobians: normal velocity, plus and minus friction times each of the others. Of
// kCondim, the greatest of any lane.
template <int kCondim>
void ContactJacobian(const Tables& t, const Scratch& s, const ContactLanes& g, int k, int num_rows,
                     Lane* J) {
  const Mask frictional = FromBits(g.frictional);
  const bool all_frictional = (g.lanes & ~g.frictional) == 0;
  const Lane* frame = s.contacts.frame + 9 * k;
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
    Lane relative[kCondim];
    RelativeMotion<kCondim>(frame, s.cdof + 6 * i, arm, g, i, relative);
    if (kCondim == 1 || t.elliptic) {
      for (int q = 0; q < kCondim; ++q) J[q * t.nv + i] = relative[q];
      continue;
    }
    for (int q = 1; q < kCondim; ++q) {
      Lane* pair = J + 2 * (q - 1) * t.nv + i;
      const Lane along = relative[q] * g.friction[q - 1];
      pair[0] = relative[0] + along;
      pair[t.nv] = relative[0] - along;
    }
    if (!all_frictional) J[i] = Select(frictional, J[i], relative[0]);
  }
}

void ContactJacobian(const Tables& t, const Scratch& s, const ContactLanes& g, int k, int num_rows,
                     Lane* J) {
  switch (g.condim) {
    case 1:
      return ContactJacobian<1>(t, s, g, k, num_rows, J);
    case 3:
      return ContactJacobian<3>(t, s, g, k, num_rows, J);
    case 4:
      return ContactJacobian<4>(t, s, g, k, num_rows, J);
    default:
      return ContactJacobian<6>(t, s, g, k, num_rows, J);
  }
}

// R of the rows, from the normal's, and D.
void RegularizeFriction(const Tables& t, const ContactLanes& g, Lane R_normal, int num_rows,
                        Lane* R, Lane* D, Lane* mu_of_cone) {
  const double impratio = t.impratio > kMinVal ? t.impratio : kMinVal;
  const Lane R_tangent = impratio == 1 ? R_normal : R_normal / impratio;
  const Lane mu = impratio == 1 ? g.friction[0] : g.friction[0] * Sqrt(R_tangent / R_normal);
  if (!t.elliptic) {
    const Lane R_edge = Select(FromBits(g.frictional), 2.0 * mu * mu * R_normal, R_normal);
    const Lane D_edge = 1.0 / R_edge;
    for (int q = 0; q < num_rows; ++q) {
      R[q] = R_edge;
      D[q] = D_edge;
    }
    return;
  }
  *mu_of_cone = mu;
  R[0] = R_normal;
  if (num_rows > 1) R[1] = R_tangent;
  for (int q = 2; q < num_rows; ++q) {
    R[q] = R_tangent * g.friction[0] * g.friction[0] / (g.friction[q - 1] * g.friction[q - 1]);
  }
  for (int q = 0; q < num_rows; ++q) D[q] = 1.0 / R[q];
}

// Lanes whose contact has a row.
unsigned LanesWithRow(const Tables& t, const ContactLanes& g, int row) {
  if (row < RowsOfContact(t, g.least_condim)) return g.lanes;
  unsigned bits = 0;
  for (int l = 0; l < kWidth; ++l) bits |= static_cast<unsigned>(row < g.RowsIn(t, l)) << l;
  return bits;
}

void AddCone(Cones& cones, const ContactLanes& g, int first, int num_rows, Lane mu) {
  const int k = cones.count++;
  cones.first_row[k] = first;
  cones.num_rows[k] = num_rows;
  cones.mu[k] = mu;
  for (int i = 0; i < kFrictions; ++i) cones.friction[kFrictions * k + i] = g.friction[i];
}

void FillContactRows(const Tables& t, Scratch& s, int k, const ContactLanes& g) {
  Rows& rows = s.rows;
  Contacts& c = s.contacts;
  s.redo |= CompleteFrame(c.frame + 9 * k) & g.lanes;
  const Lane violation = c.dist[k] - g.margin;
  const LaneSoftness soft(s.softness, g.softness);
  const Lane impedance = Impedance(soft, violation);
  const int first = c.first_row[k], num_rows = c.num_rows[k];
  ContactJacobian(t, s, g, k, num_rows, rows.J + first * t.nv);
  Lane mu = Splat(0);
  RegularizeFriction(t, g, Regularizer(impedance, g.inverse_weight), num_rows, rows.R + first,
                     rows.D + first, &mu);
  if (t.elliptic && num_rows > 1) AddCone(rows.cones, g, first, num_rows, mu);
  for (int q = 0; q < num_rows; ++q) {
    const int r = first + q;
    const bool along_normal = q == 0 || !t.elliptic;
    rows.valid[r] = LanesWithRow(t, g, q);
    rows.dofs[r] = g.any_dof;
    rows.violation[r] = along_normal ? violation : Splat(0);
    rows.impedance[r] = impedance;
    rows.stiffness[r] = along_normal ? soft.stiffness : Splat(0);
    rows.damping[r] = soft.damping;
  }
  if (!t.several_trees) return;
  for (int l = 0; l < kWidth; ++l) {
    if (k >= c.count[l]) continue;
    const uint64_t trees = t.pair[c.pair[k][l]].trees;
    for (int r = first; r < first + num_rows; ++r) rows.trees[r][l] = trees;
  }
}

}  // namespace

unsigned CompleteFrame(Lane* f) {
  const Mask defined = Normalize3(f) >= 0.5;
  const Mask undefined = Dot3(f + 3, f + 3) < 0.25;
  if (Any(undefined)) {
    const Mask y = (f[1] < 0.5) & (f[1] > -0.5);
    f[3] = Select(undefined, Splat(0), f[3]);
    f[4] = Select(undefined, Select(y, Splat(1), Splat(0)), f[4]);
    f[5] = Select(undefined, Select(y, Splat(0), Splat(1)), f[5]);
  }
  const Lane along = Dot3(f, f + 3);
  for (int i = 0; i < 3; ++i) f[3 + i] = f[3 + i] - f[i] * along;
  Normalize3(f + 3);  // of an upright capsule's axis nothing is left
  Cross(f + 6, f, f + 3);
  return ~Bits(defined) & kAllLanes;
}

void AddContactRows(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  Contacts& c = s.contacts;
  rows.cones.count = 0;
  for (int k = 0; k < c.max_count; ++k) {
    const ContactLanes g(t, s, k);
    c.first_row[k] = rows.max_count;
    c.num_rows[k] = RowsOfContact(t, g.condim);
    FillContactRows(t, s, k, g);
    rows.max_count += c.num_rows[k];
    for (int l = 0; l < kWidth; ++l) rows.count[l] += g.RowsIn(t, l);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
