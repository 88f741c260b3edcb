// Forces on bodies, applied ones and those of contacts, connects and welds: mj_rnePostConstraint's
// cfrc_ext.
#include "lanes/stages/rows.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// A contact's force and torque in its frame, normal first; rows that a lane does not have are zero.
void ContactForce(const Tables& t, const Scratch& s, int k, Lane* force) {
  const Contacts& c = s.contacts;
  const Lane* f = s.rows.force + c.first_row[k];
  const int num_rows = c.num_rows[k];
  for (int i = 0; i < 6; ++i) force[i] = Splat(0);
  if (num_rows == 1 || t.elliptic) {
    for (int i = 0; i < num_rows; ++i) force[i] = f[i];
    return;
  }
  Lane friction[kFrictions] = {};
  for (int l = 0; l < kWidth; ++l) {
    if (k >= c.count[l]) continue;
    const int pair = c.pair[k][l];
    for (int i = 0; i < t.surface[t.pair[pair].surface].condim - 1; ++i) {
      At(friction[i], l) = At(s.pair_friction[kFrictions * pair + i], l);
    }
  }
  force[0] = f[0];
  for (int i = 1; i < num_rows; ++i) force[0] = force[0] + f[i];
  for (int i = 0; i < num_rows / 2; ++i) {
    force[1 + i] = (f[2 * i] - f[2 * i + 1]) * friction[i];
  }
}

// Adds the force (and torque) of a connect or weld, times `sign`, to one of its bodies.
void AddTie(const Tables& t, Scratch& s, const Equality& e, bool first) {
  const int body = first ? e.body1 : e.body2;
  if (body == 0) return;
  const Lane* force = s.rows.force + e.first_row;
  const Lane* com = s.subtree_com + 3 * t.body[body].root;
  Lane arm[3], moment[3];
  TiedPoint(s, e, first, arm);
  for (int i = 0; i < 3; ++i) arm[i] = com[i] - arm[i];
  Cross(moment, arm, force);
  Lane torque[3] = {Splat(0), Splat(0), Splat(0)};
  if (e.kind == EqualityKind::kWeld) WeldTorque(s, e, torque);
  const double sign = first ? 1 : -1;
  Lane* sum = s.cfrc_ext + 6 * body;
  for (int i = 0; i < 3; ++i) {
    sum[i] = sum[i] + sign * (torque[i] - moment[i]);
    sum[3 + i] = sum[3 + i] + sign * force[i];
  }
}

// Adds what the caller applies to a body.
void AddApplied(const Tables& t, Scratch& s, int body) {
  const Lane *force = s.xfrc_applied + 6 * body, *torque = force + 3;
  const Lane* com = s.subtree_com + 3 * t.body[body].root;
  Lane arm[3], moment[3];
  for (int i = 0; i < 3; ++i) arm[i] = com[i] - s.xipos[3 * body + i];
  Cross(moment, arm, force);
  Lane* sum = s.cfrc_ext + 6 * body;
  for (int i = 0; i < 3; ++i) {
    sum[i] = sum[i] + (torque[i] - moment[i]);
    sum[3 + i] = sum[3 + i] + force[i];
  }
}

// Adds a contact's wrench (torque about the contact point, force), times `sign`, to the lanes'
// first or second bodies, about the centers of mass of their trees.
void AddWrench(const Tables& t, Scratch& s, int k, int Pair::* body_of, double sign,
               const Lane* wrench) {
  const Contacts& c = s.contacts;
  int body[kWidth];
  Lane arm[3], moment[3], about_com[6];
  for (int l = 0; l < kWidth; ++l) {
    body[l] = k < c.count[l] ? t.pair[c.pair[k][l]].*body_of : 0;
    const Lane* com = s.subtree_com + 3 * t.body[body[l]].root;
    for (int i = 0; i < 3; ++i) At(arm[i], l) = At(com[i], l) - At(c.pos[3 * k + i], l);
  }
  Cross(moment, arm, wrench + 3);
  for (int i = 0; i < 3; ++i) {
    about_com[i] = wrench[i] - moment[i];
    about_com[3 + i] = wrench[3 + i];
  }
  for (int l = 0; l < kWidth; ++l) {
    if (body[l] == 0) continue;
    for (int i = 0; i < 6; ++i) At(s.cfrc_ext[6 * body[l] + i], l) += sign * At(about_com[i], l);
  }
}

}  // namespace

void ExternalForces(const Tables& t, Scratch& s) {
  const Contacts& c = s.contacts;
  for (int i = 0; i < 6 * t.nbody; ++i) s.cfrc_ext[i] = Splat(0);
  for (int b = 1; b < (s.applied != 0 ? t.nbody : 0); ++b) AddApplied(t, s, b);
  for (int k = 0; k < c.max_count; ++k) {
    const Lane* frame = c.frame + 9 * k;
    Lane local[6], wrench[6];
    ContactForce(t, s, k, local);
    RotateBack(wrench + 3, frame, local);
    RotateBack(wrench, frame, local + 3);
    AddWrench(t, s, k, &Pair::body1, -1, wrench);
    AddWrench(t, s, k, &Pair::body2, 1, wrench);
  }
  for (int k = 0; k < t.num_equalities; ++k) {
    const Equality& e = t.equality[k];
    if (e.num_rows == 1) continue;
    AddTie(t, s, e, true);
    AddTie(t, s, e, false);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
