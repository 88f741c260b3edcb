// Constraints that lanes have no code for, by MuJoCo's functions, one lane at a time. Rows stand at
// the same places in all lanes.
#include "lanes/stages/rows.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// Nobody has a row, and contacts' frames are whole.
void BeginRows(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  Contacts& c = s.contacts;
  rows.any = 0;
  rows.max_count = FixedContactRow(t, c.max_count);
  for (int r = 0; r < rows.max_count; ++r) {
    rows.valid[r] = 0;
    rows.force[r] = Splat(0);
  }
  for (int k = 0; k < c.max_count; ++k) {
    const unsigned lanes = LanesWithMoreThan(c.count, k);
    s.redo |= CompleteFrame(c.frame + 9 * k) & lanes;
    c.first_row[k] = FixedContactRow(t, k);
    c.num_rows[k] = 0;
    for (unsigned some = lanes; some != 0; some &= some - 1) {
      const Pair& pair = t.pair[c.pair[k][__builtin_ctz(some)]];
      const int num_rows = RowsOfContact(t, t.surface[pair.surface].condim);
      if (num_rows > c.num_rows[k]) c.num_rows[k] = num_rows;
    }
  }
}

void Take(const Tables& t, Scratch& s, int l, const SolvedConstraints& solved) {
  Rows& rows = s.rows;
  rows.count[l] = solved.num_rows;
  if (solved.num_rows == 0) return;
  rows.any |= 1u << l;
  for (int i = 0; i < t.nv; ++i) {
    At(s.qacc[i], l) = solved.qacc[i];
    At(s.qfrc_constraint[i], l) = solved.qfrc_constraint[i];
  }
  for (int i = 0; i < solved.num_rows; ++i) {
    const SolvedRow& row = solved.row[i];
    rows.valid[row.row] |= 1u << l;
    At(rows.force[row.row], l) = row.force;
    if (row.limit < 0) continue;
    rows.limit[row.row - FirstInequality(t)][l] = row.limit;
    At(rows.violation[row.row], l) = row.violation;
    At(rows.velocity[row.row], l) = row.velocity;
  }
}

}  // namespace

void AskForConstraints(const Tables& t, Scratch& s) {
  BeginRows(t, s);
  for (int i = 0; i < t.nv; ++i) {
    s.qacc[i] = s.qacc_smooth[i];
    s.qfrc_constraint[i] = Splat(0);
  }
  const ConstraintCall& call = s.constraints;
  for (int l = 0; l < kWidth; ++l) {
    s.rows.count[l] = 0;
    if ((s.redo >> l & 1) != 0) continue;
    for (int e = 0; e < t.num_equalities; ++e) {
      call.eq_active[e] = (s.equality_active[e] >> l & 1) != 0;
    }
    SolvedConstraints solved;
    if (call.solve(call.self, l, &solved)) {
      Take(t, s, l, solved);
    } else {
      s.redo |= 1u << l;
    }
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
