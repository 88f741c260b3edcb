// The dual problem by projected Gauss-Seidel with Nesterov momentum: mj_solPGS.
//
// minimize ½ fᵀ A f + fᵀ b with A = J M⁻¹ Jᵀ + R and bounds on f: none for equalities, the loss
// either way for dry friction, f >= 0 for the others. A is made in all lanes at once. Sweeps run
// lane by lane, since each is a chain of dependent operations whose order depends on the number of
// rows a lane has.
#include "lanes/stages/blas.h"
#include "lanes/stages/newton.h"
#include "lanes/stages/rows.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// Four doubles on any processor (as two registers where there are only pairs).
using Quad = double __attribute__((vector_size(32), aligned(8)));

Quad LoadQuad(const double* x) { return *reinterpret_cast<const Quad*>(x); }

// mju_dot of doubles.
[[gnu::always_inline]] inline double DotScalar(const double* a, const double* b, int n) {
  double r = 0;
  int k = 0;
  if (n >= 4) {
    Quad sum = LoadQuad(a) * LoadQuad(b);
    for (k = 4; k + 4 <= n; k += 4) sum = sum + LoadQuad(a + k) * LoadQuad(b + k);
    r = (sum[0] + sum[2]) + (sum[1] + sum[3]);
  }
  switch (n - k) {
    case 3:
      return r + (a[k] * b[k] + a[k + 1] * b[k + 1] + a[k + 2] * b[k + 2]);
    case 2:
      return r + (a[k] * b[k] + a[k + 1] * b[k + 1]);
    case 1:
      return r + a[k] * b[k];
    default:
      return r;
  }
}

// One turn of the generator that shuffles the order in which rows are visited.
uint32_t Pcg32(uint64_t& state) {
  const uint64_t old = state;
  state = old * 6364136223846793005ULL + 1;
  const auto mixed = static_cast<uint32_t>(((old >> 18u) ^ old) >> 27u);
  const auto turn = static_cast<uint32_t>(old >> 59u);
  return (mixed >> turn) | (mixed << ((-turn) & 31));
}

uint64_t SeededPcg32() {
  uint64_t state = 0;
  Pcg32(state);
  return state;
}

void Shuffle(uint16_t* order, int n, uint64_t& random) {
  for (int i = n - 1; i > 0; --i) {
    const uint32_t j = Pcg32(random) % static_cast<uint32_t>(i + 1);
    const uint16_t other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
}

// The order of a sweep over n rows, from the table if that is large enough for it; else null.
// MuJoCo seeds its generator anew for every solve, so that orders depend on these two numbers
// alone.
const uint16_t* TabledOrder(VisitOrders& orders, int n, int sweep) {
  if (n > VisitOrders::kMaxRows || sweep >= VisitOrders::kMaxSweeps) return nullptr;
  uint16_t* first = orders.table + n * (n - 1) / 2 * VisitOrders::kMaxSweeps;
  for (int& filled = orders.num_filled[n]; filled <= sweep; ++filled) {
    uint16_t* order = first + filled * n;
    if (filled == 0) orders.random[n] = SeededPcg32();
    for (int i = 0; i < n; ++i) {
      order[i] = filled == 0 ? static_cast<uint16_t>(i) : order[i - n];
    }
    Shuffle(order, n, orders.random[n]);
  }
  return first + sweep * n;
}

// The problem of one island of a lane, whose rows stand among all of that lane's, and working
// vectors of all, of length n.
struct LaneProblem {
  int lane, n, stride;
  int count;  // of the island's rows
  int* rows;  // (count)
  double* A;  // (n, stride), symmetric
  double *b, *force, *product, *inverse_diagonal, *diagonal, *previous, *extrapolated, *low, *high;
  uint16_t* own_order;  // of sweeps that are not in the table
  double scale;
  bool has_own_order;
  uint64_t random;  // behind own_order
  const uint16_t* order;
  int steps;  // since momentum was last dropped
  double improvement;

  // by two selections: branches on what nobody can foretell take longer
  double Bounded(int i, double x) const {
    const double raised = x < low[i] ? low[i] : x;
    return raised > high[i] ? high[i] : raised;
  }
  void Begin();  // for all islands of the lane
  void Extrapolate(bool first);
  void SetOrder(VisitOrders& orders, int sweep);
  void Visit(int i);
  bool Opposed() const;
};

void LaneProblem::Begin() {
  // no warm start if it is worse than no force
  double cost = DotScalar(force, b, n);
  for (int i = 0; i < n; ++i) product[i] = DotScalar(A + i * stride, force, n);
  cost += 0.5 * DotScalar(force, product, n);
  for (int i = 0; i < n; ++i) {
    if (cost > 0) force[i] = 0;
    inverse_diagonal[i] = 1 / A[i * stride + i];
    diagonal[i] = 1 / inverse_diagonal[i];
    previous[i] = force[i];
  }
}

void LaneProblem::SetOrder(VisitOrders& orders, int sweep) {
  order = TabledOrder(orders, count, sweep);
  if (order != nullptr) return;
  if (!has_own_order) {
    has_own_order = true;
    random = SeededPcg32();
    for (int i = 0; i < count; ++i) own_order[i] = static_cast<uint16_t>(i);
    for (int k = 0; k < sweep; ++k) Shuffle(own_order, count, random);
  }
  Shuffle(own_order, count, random);
  order = own_order;
}

// Forces from momentum, projected.
void LaneProblem::Extrapolate(bool first) {
  const double beta = first ? 0 : static_cast<double>(steps - 1) / static_cast<double>(steps + 2);
  for (int c = 0; c < count; ++c) {
    const int i = rows[c];
    const double now = force[i];
    if (beta > 0) {
      force[i] = Bounded(i, now + beta * (now - previous[i]));
    }
    previous[i] = now;
    extrapolated[i] = force[i];
  }
}

// Minimizes over one row's force.
inline void LaneProblem::Visit(int i) {
  const double gradient = b[i] + DotScalar(A + i * stride, force, n);
  const double old = force[i];
  double wanted = Bounded(i, old - gradient * inverse_diagonal[i]);
  const double delta = wanted - old;
  double change = 0.5 * delta * delta * diagonal[i] + delta * gradient;
  if (change > 1e-10) {
    wanted = old;
    change = 0;
  }
  force[i] = wanted;
  improvement -= change;
}

// Whether the sweep went against the extrapolation.
bool LaneProblem::Opposed() const {
  double along = 0;
  for (int c = 0; c < count; ++c) {
    const int i = rows[c];
    const double correction = force[i] - extrapolated[i];
    const double extrapolation = extrapolated[i] - previous[i];
    along += correction * extrapolation;
  }
  return along < 0;
}

// Sweeps of several lanes and islands side by side: each is a chain in which every operation waits
// for the last, so the processor has time for the others'.
constexpr int kMaxProblems = kWidth * kMaxDofs;

void Solve(const Tables& t, VisitOrders& orders, LaneProblem* problems, int count) {
  LaneProblem* open[kMaxProblems];
  for (int k = 0; k < count; ++k) open[k] = problems + k;
  for (int iteration = 0; iteration < t.iterations && count > 0; ++iteration) {
    int most = 0;
    for (int k = 0; k < count; ++k) {
      LaneProblem& p = *open[k];
      p.Extrapolate(iteration == 0);
      p.SetOrder(orders, iteration);
      p.improvement = 0;
      if (p.count > most) most = p.count;
    }
    for (int visit = 0; visit < most; ++visit) {
      for (int k = 0; k < count; ++k) {
        LaneProblem& p = *open[k];
        if (visit < p.count) p.Visit(p.rows[p.order[visit]]);
      }
    }
    int still_open = 0;
    for (int k = 0; k < count; ++k) {
      LaneProblem& p = *open[k];
      p.steps = iteration > 0 && p.Opposed() ? 0 : p.steps + 1;
      if (!(p.improvement * p.scale < t.tolerance)) open[still_open++] = open[k];
    }
    count = still_open;
  }
}

// ---- in lanes -----------------------------------------------------------------------------------

Lane& LowerTriangle(Lane* A, int i, int j) { return A[i * (i + 1) / 2 + j]; }

// The dofs and all their ancestors.
uint64_t WithAncestors(const Tables& t, uint64_t dofs) {
  uint64_t all = dofs;
  for (int i = t.nv - 1; i > 0; --i) {
    if ((all >> i & 1) != 0 && t.dof[i].parent >= 0) all |= uint64_t{1} << t.dof[i].parent;
  }
  return all;
}

// y = J L⁻¹ D^-½ of one row, on `dofs`, outside of which it is zero.
void HalfSolve(const Tables& t, const Scratch& s, const Lane* J, const Lane* sqrt_inverse,
               uint64_t dofs, Lane* y) {
  Lane solved[kMaxDofs];
  for (int i = t.nv - 1; i >= 0; --i) {
    if ((dofs >> i & 1) == 0) continue;
    Lane x = J[i];
    for (int k = i > 0 ? t.M_colend[i - 1] : 0; k < t.M_colend[i]; ++k) {
      const MatrixEntry entry = t.M_below[k];
      if ((dofs >> entry.row & 1) != 0) x = x - s.qLD[entry.index] * solved[entry.row];
    }
    solved[i] = x;
    y[i] = x * sqrt_inverse[i];
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

// A = Y Yᵀ + R with Y = J L⁻¹ D^-½; b = J qacc_smooth - aref; warm-started forces.
void MakeProblem(const Tables& t, Scratch& s) {
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
  for (int r = 0; r < rows.max_count; ++r) {
    const Lane* J = rows.J + r * nv;
    const Lane* y = w.Y + r * nv;
    HalfSolve(t, s, J, sqrt_inverse, w.Y_dofs[r], w.Y + r * nv);
    for (int q = 0; q <= r;) {
      // a contact's four rows have the same dofs
      const uint64_t* others = w.Y_dofs + q;
      const bool four =
          q + 3 <= r && others[0] == others[1] && others[0] == others[2] && others[0] == others[3];
      const auto products = four ? Products<4> : Products<1>;
      products(y, w.Y + q * nv, nv, w.Y_dofs[r] & others[0], &LowerTriangle(w.A, r, q));
      q += four ? 4 : 1;
    }
    LowerTriangle(w.A, r, r) = LowerTriangle(w.A, r, r) + rows.R[r];
    w.b[r] = Dot(J, s.qacc_smooth, nv) - rows.aref[r];
    s.redo |= LanesWithBadRow(rows, r, w.b[r]);
    w.residual[r] = Dot(J, s.qacc_warmstart, nv) - rows.aref[r];
    rows.force[r] = -rows.D[r] * w.residual[r];
    if (r >= FirstInequality(t)) {
      rows.force[r] = Select(w.residual[r] < 0.0, rows.force[r], Splat(0));
    } else if (r >= t.num_equality_rows) {
      const Lane loss = LossOf(t, s, r), bound = rows.R[r] * loss;
      const Lane above = Select(w.residual[r] >= bound, -loss, rows.force[r]);
      rows.force[r] = Select(w.residual[r] <= -bound, loss, above);
    }
  }
}

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

// Takes a lane's problem out of the lanes, of all islands.
LaneProblem Extract(const Tables& t, Scratch& s, int l) {
  SolverScratch& w = s.solver;
  int* index = w.lane_rows + l * t.max_rows;
  int n = 0;
  for (int r = 0; r < s.rows.max_count; ++r) {
    if ((s.rows.valid[r] >> l & 1) != 0) index[n++] = r;
  }
  const int stride = (n + 3) / 4 * 4;
  double* vectors = w.vectors + l * SolverScratch::kVectors * w.capacity;
  const auto vector = [&](int i) { return vectors + i * stride; };
  LaneProblem p{};
  p.lane = l;
  p.n = p.count = n;
  p.stride = stride;
  p.rows = w.island_rows + l * w.capacity;
  p.own_order = w.own_order + l * w.capacity;
  p.A = w.dense + l * w.capacity * w.capacity;
  double** const all_vectors[] = {&p.b,        &p.force,    &p.product,      &p.inverse_diagonal,
                                  &p.diagonal, &p.previous, &p.extrapolated, &p.low,
                                  &p.high};
  static_assert(sizeof(all_vectors) / sizeof(*all_vectors) == SolverScratch::kVectors);
  for (int i = 0; i < SolverScratch::kVectors; ++i) *all_vectors[i] = vector(i);
  for (int i = 0; i < n; ++i) {
    p.rows[i] = i;
    p.b[i] = At(w.b[index[i]], l);
    p.force[i] = At(s.rows.force[index[i]], l);
    SetBounds(t, s, index[i], l, p.low + i, p.high + i);
    for (int j = 0; j <= i; ++j) {
      const double entry = At(LowerTriangle(w.A, index[i], index[j]), l);
      p.A[i * stride + j] = p.A[j * stride + i] = entry;
    }
  }
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

// qacc from the forces: mj_dualFinish.
void Finish(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
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

}  // namespace

void SolvePGS(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) {
    s.qacc[i] = s.qacc_smooth[i];
    s.qfrc_constraint[i] = Splat(0);
  }
  if (s.rows.max_count == 0) return;
  MakeProblem(t, s);
  LaneProblem problems[kMaxProblems];
  int count = 0;
  for (int l = 0; l < kWidth; ++l) {
    if (s.rows.count[l] == 0 || (s.redo >> l & 1) != 0) continue;
    LaneProblem whole = Extract(t, s, l);
    whole.Begin();
    count += Split(t, s, whole, problems + count);
  }
  Solve(t, s.solver.orders, problems, count);
  for (int k = 0; k < count; ++k) {
    const LaneProblem& p = problems[k];
    const int* index = s.solver.lane_rows + p.lane * t.max_rows;
    for (int c = 0; c < p.count; ++c)
      At(s.rows.force[index[p.rows[c]]], p.lane) = p.force[p.rows[c]];
  }
  Finish(t, s);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
