#include "lanes/stages/dual.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/newton.h"
#include "lanes/stages/rows.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

Lane& LowerTriangle(Lane* A, int i, int j) { return A[i * (i + 1) / 2 + j]; }

// The dofs and all their ancestors.
uint64_t WithAncestors(const Tables& t, uint64_t dofs) {
  uint64_t all = dofs;
  for (int i = t.nv - 1; i > 0; --i) {
    if ((all >> i & 1) != 0 && t.dof[i].parent >= 0) all |= uint64_t{1} << t.dof[i].parent;
  }
  return all;
}

// Y = J L⁻¹ D^-½ of kCount rows one after another, on `dofs`, outside of which it is zero.
template <int kCount>
void HalfSolve(const Tables& t, const Scratch& s, const Lane* J, const Lane* sqrt_inverse,
               uint64_t dofs, Lane* Y) {
  Lane x[kMaxDofs][kCount];
  for (uint64_t left = dofs; left != 0; left &= left - 1) {
    const int i = __builtin_ctzll(left);
    for (int k = 0; k < kCount; ++k) x[i][k] = J[k * t.nv + i];
  }
  for (uint64_t left = dofs; left != 0;) {
    const int i = 63 - __builtin_clzll(left);
    left ^= uint64_t{1} << i;
    Lane solved[kCount];
    for (int k = 0; k < kCount; ++k) {
      solved[k] = x[i][k];
      Y[k * t.nv + i] = solved[k] * sqrt_inverse[i];
    }
    const int begin = t.M_rowadr[i];
    for (int a = begin; a < begin + t.M_rownnz[i] - 1; ++a) {
      Lane* ancestor = x[t.M_colind[a]];
      for (int k = 0; k < kCount; ++k) ancestor[k] = ancestor[k] - s.qLD[a] * solved[k];
    }
  }
}

// Products of y with kCount rows one after another, summed over `dofs`.
template <int kCount>
void Products(const Lane* y, const Lane* rows, int stride, uint64_t dofs, Lane* r) {
  Lane sum[kCount];
  for (int k = 0; k < kCount; ++k) sum[k] = Splat(0);
  for (; dofs != 0; dofs &= dofs - 1) {
    const int i = __builtin_ctzll(dofs);
    for (int k = 0; k < kCount; ++k) sum[k] = sum[k] + y[i] * rows[k * stride + i];
  }
  for (int k = 0; k < kCount; ++k) r[k] = sum[k];
}

// Whether the next four of `count` rows have the same dofs, as a contact's have.
bool AreFour(const uint64_t* dofs, int r, int count) {
  return r + 4 <= count && dofs[r] == dofs[r + 1] && dofs[r] == dofs[r + 2] &&
         dofs[r] == dofs[r + 3];
}

}  // namespace

// A = Y Yᵀ + R with Y = J L⁻¹ D^-½; b = J qacc_smooth - aref.
void MakeDualProblem(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  SolverScratch& w = s.solver;
  const int nv = t.nv;
  uint64_t dofs = 0;
  for (int r = 0; r < rows.max_count; ++r) {
    w.Y_dofs[r] = WithAncestors(t, rows.dofs[r]);
    dofs |= w.Y_dofs[r];
  }
  Lane sqrt_inverse[kMaxDofs];
  for (; dofs != 0; dofs &= dofs - 1) {
    const int i = __builtin_ctzll(dofs);
    sqrt_inverse[i] = 1.0 / Sqrt(s.qLD[t.M_rowadr[i] + t.M_rownnz[i] - 1]);
  }
  for (int r = 0; r < rows.max_count;) {
    const bool four = AreFour(w.Y_dofs, r, rows.max_count);
    const auto solve = four ? HalfSolve<4> : HalfSolve<1>;
    solve(t, s, rows.J + r * nv, sqrt_inverse, w.Y_dofs[r], w.Y + r * nv);
    r += four ? 4 : 1;
  }
  for (int r = 0; r < rows.max_count; ++r) {
    const Lane* J = rows.J + r * nv;
    const Lane* y = w.Y + r * nv;
    for (int q = 0; q <= r;) {
      const bool four = AreFour(w.Y_dofs, q, r + 1);
      const auto products = four ? Products<4> : Products<1>;
      products(y, w.Y + q * nv, nv, w.Y_dofs[r] & w.Y_dofs[q], &LowerTriangle(w.A, r, q));
      q += four ? 4 : 1;
    }
    LowerTriangle(w.A, r, r) = LowerTriangle(w.A, r, r) + rows.R[r];
    w.b[r] = Dot(J, s.qacc_smooth, nv) - rows.aref[r];
    s.redo |= LanesWithBadRow(rows, r, w.b[r]);
  }
}

namespace {

// The bounds on a row's force.
void SetBounds(const Tables& t, const Scratch& s, int row, int l, double* low, double* high) {
  constexpr double kInfinity = __builtin_huge_val();
  *low = 0;
  *high = kInfinity;
  if (row < t.num_equality_rows) {
    *low = -kInfinity;
  } else if (row < FirstInequality(t)) {
    *high = At(LossOf(t, s, row), l);
    *low = -*high;
  }
}

// Rows of dry friction; of contacts' every second is the first of a pair, if they have friction.
void FindSlips(const Tables& t, const Scratch& s, const int* index, LaneProblem& p) {
  const Contacts& c = s.contacts;
  int k = 0;
  for (int i = 0; i < p.n; ++i) {
    p.slip[i] = Slip::kNone;
    if (index[i] < FirstInequality(t)) {
      if (index[i] >= t.num_equality_rows) p.slip[i] = Slip::kDry;
      continue;
    }
    while (k < c.count[p.lane] && c.first_row[k] + c.num_rows[k] <= index[i]) ++k;
    if (k == c.count[p.lane] || index[i] < c.first_row[k]) continue;
    const int condim = t.surface[t.pair[c.pair[k][p.lane]].surface].condim;
    if (condim > 1 && (index[i] - c.first_row[k]) % 2 == 0) p.slip[i] = Slip::kEdge;
  }
}

// Takes a lane's problem out of the lanes, of all islands, with A at this place.
LaneProblem Extract(const Tables& t, Scratch& s, int l, double* A) {
  SolverScratch& w = s.solver;
  int* index = w.lane_rows + l * t.max_rows;
  int n = 0;
  for (int r = 0; r < s.rows.max_count; ++r) {
    if ((s.rows.valid[r] >> l & 1) != 0) index[n++] = r;
  }
  const int stride = n / 4 * 4 + 4;
  double* vectors = w.vectors + l * SolverScratch::kVectors * w.capacity;
  const auto vector = [&](int i) { return vectors + i * stride; };
  LaneProblem p{};
  p.lane = l;
  p.n = p.count = n;
  p.stride = stride;
  p.rows = w.island_rows + l * w.capacity;
  p.own_order = w.own_order + l * w.capacity;
  p.slip = w.slip + l * w.capacity;
  p.A = A;
  p.none = n < 4 ? 0.0 : -0.0;
  double** const all_vectors[] = {&p.b,        &p.force,    &p.product,      &p.inverse_diagonal,
                                  &p.diagonal, &p.previous, &p.extrapolated, &p.low,
                                  &p.high,     &p.R};
  static_assert(sizeof(all_vectors) / sizeof(*all_vectors) == SolverScratch::kVectors);
  for (int i = 0; i < SolverScratch::kVectors; ++i) *all_vectors[i] = vector(i);
  for (int i = 0; i < n; ++i) {
    p.rows[i] = i;
    p.b[i] = At(w.b[index[i]], l);
    p.force[i] = At(s.rows.force[index[i]], l);
    p.R[i] = At(s.rows.R[index[i]], l);
    SetBounds(t, s, index[i], l, p.low + i, p.high + i);
    for (int j = 0; j <= i; ++j) {
      const double entry = At(LowerTriangle(w.A, index[i], index[j]), l);
      p.A[i * stride + j] = p.A[j * stride + i] = entry;
    }
    for (int j = n; j < stride; ++j) p.A[i * stride + j] = -0.0;
  }
  for (int i = n; i < stride; ++i) {
    p.force[i] = p.previous[i] = p.extrapolated[i] = p.low[i] = p.high[i] = 1;
  }
  if (t.noslip_iterations > 0) FindSlips(t, s, index, p);
  return p;
}

// 1 / Σ diag M over dofs of these trees.
double Scale(const Tables& t, const Scratch& s, int l, uint64_t trees) {
  double inertia = 0;
  for (int i = 0; i < t.nv; ++i) {
    if ((trees >> t.dof_tree[i] & 1) == 0) continue;
    inertia += At(s.M[t.M_rowadr[i] + t.M_rownnz[i] - 1], l);
  }
  return 1 / (inertia > kMinVal ? inertia : kMinVal);
}

// Appends the islands of a lane's problem to `problems`; returns how many.
int Split(const Tables& t, const Scratch& s, LaneProblem whole, LaneProblem* problems) {
  if (!t.several_trees) {
    whole.scale = Scale(t, s, whole.lane, uint64_t{1} << t.dof_tree[t.first_solver_dof]);
    problems[0] = whole;
    return 1;
  }
  const int* index = s.solver.lane_rows + whole.lane * t.max_rows;
  uint64_t trees[kMaxDofs];
  const int islands = IslandsOfLane(s.rows, whole.lane, trees);
  for (int k = 0, first = 0; k < islands; ++k) {
    LaneProblem& p = problems[k] = whole;
    p.rows = whole.rows + first;
    p.own_order = whole.own_order + first;
    p.count = 0;
    p.scale = Scale(t, s, whole.lane, trees[k]);
    for (int i = 0; i < whole.n; ++i) {
      if ((s.rows.trees[index[i]][whole.lane] & trees[k]) != 0) p.rows[p.count++] = i;
    }
    first += p.count;
  }
  return islands;
}

}  // namespace

int ExtractProblems(const Tables& t, Scratch& s, bool begins, LaneProblem* problems) {
  int count = 0;
  double* A = s.solver.dense;
  for (int l = 0; l < kWidth; ++l) {
    if (s.rows.count[l] == 0 || (s.redo >> l & 1) != 0) continue;
    LaneProblem whole = Extract(t, s, l, A);
    A += whole.n * whole.stride;
    if (begins) whole.Begin();
    count += Split(t, s, whole, problems + count);
  }
  return count;
}

void FinishDual(const Tables& t, Scratch& s, const LaneProblem* problems, int count) {
  for (int k = 0; k < count; ++k) {
    const LaneProblem& p = problems[k];
    const int* index = s.solver.lane_rows + p.lane * t.max_rows;
    for (int c = 0; c < p.count; ++c)
      At(s.rows.force[index[p.rows[c]]], p.lane) = p.force[p.rows[c]];
  }
  Rows& rows = s.rows;
  for (int i = 0; i < t.nv; ++i) s.qfrc_constraint[i] = Splat(0);
  for (int r = 0; r < rows.max_count; ++r) {
    rows.force[r] = Select(FromBits(rows.valid[r]), rows.force[r], Splat(0));
    if (!Any(rows.force[r] != 0.0)) continue;
    const Lane* J = rows.J + r * t.nv;
    for (int i = 0; i < t.nv; ++i) {
      s.qfrc_constraint[i] = s.qfrc_constraint[i] + J[i] * rows.force[r];
    }
  }
  Run(RecordedStage::kConstraintAcceleration, t, s);
  const Mask any = FromBits(rows.any);
  for (int i = 0; i < t.nv; ++i) {
    s.qacc[i] = Select(any, s.acc[i] + s.qacc_smooth[i], s.qacc_smooth[i]);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
