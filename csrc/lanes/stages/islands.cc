// Islands: sets of trees that constraints connect, each solved as a problem of its own (mj_island).
//
// Lanes may have different ones. Every island that some lane has is cut out of the step, as a
// smaller step with the island's dofs and rows alone, and solved in the lanes that have it.
#include "lanes/stages/cones.h"
#include "lanes/stages/newton.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

struct Island {
  uint64_t trees;  // bits
  unsigned lanes;  // that have it
};

}  // namespace

int IslandsOfLane(const Rows& rows, int l, uint64_t* trees) {
  uint64_t last = 0;
  int n = 0;
  for (int r = 0; r < rows.max_count; ++r) {
    if ((rows.valid[r] >> l & 1) == 0 || rows.trees[r][l] == last) continue;
    uint64_t joined = last = rows.trees[r][l];
    int others = 0;
    for (int k = 0; k < n; ++k) {
      if ((trees[k] & joined) != 0) {
        joined |= trees[k];
      } else {
        trees[others++] = trees[k];
      }
    }
    trees[others] = joined;
    n = others + 1;
  }
  return n;
}

namespace {

// All lanes' islands.
class Islands {
 public:
  explicit Islands(const Scratch& s) {
    for (int l = 0; l < kWidth; ++l) {
      if ((s.rows.any >> l & 1) != 0 && (s.redo >> l & 1) == 0) AddLane(s.rows, l);
    }
  }
  const Island* begin() const { return islands_; }
  const Island* end() const { return islands_ + count_; }

 private:
  void AddLane(const Rows& rows, int l) {
    uint64_t trees[kMaxDofs];
    const int n = IslandsOfLane(rows, l, trees);
    for (int k = 0; k < n; ++k) Add(trees[k], l);
  }

  void Add(uint64_t trees, int l) {
    for (int i = 0; i < count_; ++i) {
      if (islands_[i].trees != trees) continue;
      islands_[i].lanes |= 1u << l;
      return;
    }
    islands_[count_++] = {trees, 1u << l};
  }

  Island islands_[kMaxDofs * kWidth];
  int count_ = 0;
};

// An island's part of a step: sizes in Tables, fields in Scratch, with the numbers of the island's
// dofs and rows one after another.
class Part {
 public:
  Part(const Tables& t, Scratch& s, const Island& island)
      : whole_(s), copy_(s.island), lanes_(FromBits(island.lanes)), tables_(t), scratch_(s) {
    Gather(t, island);
  }

  void Solve() {
    SolveFromStart(tables_, scratch_);
    for (int i = 0; i < tables_.nv; ++i) {
      const int dof = copy_.dof[i];
      Put(scratch_.qacc[i], whole_.qacc[dof]);
      Put(scratch_.qfrc_constraint[i], whole_.qfrc_constraint[dof]);
    }
    for (int r = 0; r < scratch_.rows.max_count; ++r) {
      Lane& force = whole_.rows.force[copy_.row[r]];
      force = Select(FromBits(scratch_.rows.valid[r]), scratch_.rows.force[r], force);
    }
    whole_.redo |= scratch_.redo & Bits(lanes_);
  }

 private:
  void Put(Lane from, Lane& to) const { to = Select(lanes_, from, to); }

  void Gather(const Tables& t, const Island& island) {
    int local[kMaxDofs], n = 0;
    for (int i = 0; i < t.nv; ++i) {
      if ((island.trees >> t.dof_tree[i] & 1) == 0) continue;
      local[i] = n;
      copy_.dof[n++] = i;
    }
    GatherDofs(t, local, n);
    GatherRows(t, island, n);
    scratch_.redo |= kAllLanes & ~island.lanes;
    scratch_.has_programs = false;
  }

  void GatherDofs(const Tables& t, const int* local, int n) {
    tables_.nv = n;
    tables_.nC = 0;
    tables_.M_rownnz = copy_.M_rownnz;
    tables_.M_rowadr = copy_.M_rowadr;
    tables_.M_colind = copy_.M_colind;
    scratch_.M = copy_.M;
    scratch_.qLD = copy_.qLD;
    scratch_.qLDiagInv = copy_.qLDiagInv;
    scratch_.qfrc_smooth = copy_.qfrc_smooth;
    scratch_.qfrc_constraint = copy_.qfrc_constraint;
    scratch_.qacc = copy_.qacc;
    scratch_.Ma = copy_.Ma;
    for (int i = 0; i < n; ++i) {
      const int dof = copy_.dof[i];
      copy_.M_rownnz[i] = t.M_rownnz[dof];
      copy_.M_rowadr[i] = tables_.nC;
      for (int a = t.M_rowadr[dof]; a < t.M_rowadr[dof] + t.M_rownnz[dof]; ++a) {
        copy_.M_colind[tables_.nC] = local[t.M_colind[a]];
        copy_.M[tables_.nC] = whole_.M[a];
        copy_.qLD[tables_.nC++] = whole_.qLD[a];
      }
      copy_.qLDiagInv[i] = whole_.qLDiagInv[dof];
      copy_.qfrc_smooth[i] = whole_.qfrc_smooth[dof];
      copy_.qacc[i] = whole_.qacc[dof];
      copy_.Ma[i] = whole_.Ma[dof];
    }
  }

  void GatherRows(const Tables& t, const Island& island, int n) {
    const Rows& from = whole_.rows;
    Rows& to = scratch_.rows;
    to = copy_.rows;
    to.any = island.lanes;
    to.max_count = 0;
    to.cones.count = 0;
    tables_.num_equality_rows = tables_.num_friction_losses = 0;
    tables_.friction_loss = copy_.friction_loss;
    ConeWalk walk(from.cones);
    int cone = -1, cone_row = 0;  // the last that was begun, and its row here
    for (int r = 0; r < from.max_count; ++r) {
      const int begins = walk.At(r);
      unsigned lanes = 0;
      for (unsigned some = from.valid[r] & island.lanes; some != 0; some &= some - 1) {
        const int l = __builtin_ctz(some);
        if ((from.trees[r][l] & island.trees) != 0) lanes |= 1u << l;
      }
      if (lanes == 0) continue;
      const int k = to.max_count++;
      const Mask valid = FromBits(lanes);
      copy_.row[k] = r;
      if (r < t.num_equality_rows) {
        ++tables_.num_equality_rows;
      } else if (r < FirstInequality(t)) {
        copy_.friction_loss[tables_.num_friction_losses++] =
            t.friction_loss[r - t.num_equality_rows];
        to.R[k] = from.R[r];
      }
      to.valid[k] = lanes;
      to.dofs[k] = 0;
      to.D[k] = Select(valid, from.D[r], Splat(0));
      to.aref[k] = Select(valid, from.aref[r], Splat(0));
      for (int i = 0; i < n; ++i) {
        const int dof = copy_.dof[i];
        to.dofs[k] |= (from.dofs[r] >> dof & 1) << i;
        to.J[k * n + i] = Select(valid, from.J[r * t.nv + dof], Splat(0));
      }
      if (begins >= 0) {
        cone = begins;
        cone_row = k;
      } else if (cone >= 0 && r < from.cones.first_row[cone] + from.cones.num_rows[cone]) {
        if (k == cone_row + 1) BeginCone(from.cones, cone, cone_row, to.cones);
        to.cones.num_rows[to.cones.count - 1] = k + 1 - cone_row;
      }
    }
  }

  // Without a second row it would be none: in no lane of this island it has friction.
  static void BeginCone(const Cones& from, int cone, int row, Cones& to) {
    const int k = to.count++;
    to.first_row[k] = row;
    to.mu[k] = from.mu[cone];
    for (int i = 0; i < kFrictions; ++i) {
      to.friction[kFrictions * k + i] = from.friction[kFrictions * cone + i];
    }
  }

  Scratch& whole_;
  const IslandScratch& copy_;
  const Mask lanes_;
  Tables tables_;
  Scratch scratch_;
};

}  // namespace

void SolveIslands(const Tables& t, Scratch& s) {
  const Islands islands(s);
  uint64_t trees = 0;
  unsigned constrained[kMaxDofs] = {};
  for (const Island& island : islands) {
    trees |= island.trees;
    for (int i = 0; i < t.nv; ++i) {
      if ((island.trees >> t.dof_tree[i] & 1) != 0) constrained[i] |= island.lanes;
    }
  }
  if (trees == 0) return;  // all lanes are left to MuJoCo
  if ((trees & (trees - 1)) == 0) {
    int first = 0, n = 0;
    for (int i = t.nv - 1; i >= 0; --i) {
      if (constrained[i] != 0) first = i, ++n;
    }
    return SolveOneTree(t, s, first, n);
  }
  ChooseStart(t, s, constrained);
  for (int r = 0; r < s.rows.max_count; ++r) s.rows.force[r] = Splat(0);
  for (const Island& island : islands) Part(t, s, island).Solve();
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
