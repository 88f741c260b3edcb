// The dual problem by projected Gauss-Seidel with Nesterov momentum: mj_solPGS.
//
// minimize ½ fᵀ A f + fᵀ b, f >= 0, with A = J M⁻¹ Jᵀ + R. A is made in all lanes at once. Sweeps
// run lane by lane, since each is a chain of dependent operations whose order depends on the number
// of rows a lane has.
#include "lanes/stages/blas.h"
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

// One lane's problem and its working vectors, all of length n.
struct LaneProblem {
  int lane, n, stride;
  double* A;  // (n, stride), symmetric
  double *b, *force, *product, *inverse_diagonal, *diagonal, *previous, *extrapolated;
  uint16_t* own_order;  // of sweeps that are not in the table
  double scale;
  bool has_own_order = false;
  uint64_t random = 0;  // behind own_order
  const uint16_t* order = nullptr;
  int steps = 0;  // since momentum was last dropped
  double improvement = 0;

  void Begin();
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
  order = TabledOrder(orders, n, sweep);
  if (order != nullptr) return;
  if (!has_own_order) {
    has_own_order = true;
    random = SeededPcg32();
    for (int i = 0; i < n; ++i) own_order[i] = static_cast<uint16_t>(i);
    for (int k = 0; k < sweep; ++k) Shuffle(own_order, n, random);
  }
  Shuffle(own_order, n, random);
  order = own_order;
}

// Forces from momentum, projected.
void LaneProblem::Extrapolate(bool first) {
  const double beta = first ? 0 : static_cast<double>(steps - 1) / static_cast<double>(steps + 2);
  for (int i = 0; i < n; ++i) {
    const double now = force[i];
    if (beta > 0) {
      const double ahead = now + beta * (now - previous[i]);
      force[i] = ahead < 0 ? 0 : ahead;
    }
    previous[i] = now;
    extrapolated[i] = force[i];
  }
}

// Minimizes over one row's force.
inline void LaneProblem::Visit(int i) {
  const double gradient = b[i] + DotScalar(A + i * stride, force, n);
  const double old = force[i];
  double wanted = old - gradient * inverse_diagonal[i];
  wanted = wanted < 0 ? 0 : wanted;
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
  for (int i = 0; i < n; ++i) {
    const double correction = force[i] - extrapolated[i];
    const double extrapolation = extrapolated[i] - previous[i];
    along += correction * extrapolation;
  }
  return along < 0;
}

// Sweeps of several lanes side by side: each is a chain in which every operation waits for the
// last, so the processor has time for the others'.
void Solve(const Tables& t, VisitOrders& orders, LaneProblem* problems, int count) {
  LaneProblem* open[kWidth];
  for (int k = 0; k < count; ++k) {
    problems[k].Begin();
    open[k] = problems + k;
  }
  for (int iteration = 0; iteration < t.iterations && count > 0; ++iteration) {
    int most = 0;
    for (int k = 0; k < count; ++k) {
      LaneProblem& p = *open[k];
      p.Extrapolate(iteration == 0);
      p.SetOrder(orders, iteration);
      p.improvement = 0;
      if (p.n > most) most = p.n;
    }
    for (int visit = 0; visit < most; ++visit) {
      for (int k = 0; k < count; ++k) {
        LaneProblem& p = *open[k];
        if (visit < p.n) p.Visit(p.order[visit]);
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
    w.residual[r] = Dot(J, s.qacc_warmstart, nv) - rows.aref[r];
    rows.force[r] = Select(w.residual[r] < 0.0, -rows.D[r] * w.residual[r], Splat(0));
  }
}

// Takes a lane's problem out of the lanes.
LaneProblem Extract(const Tables& t, Scratch& s, int l, double scale) {
  SolverScratch& w = s.solver;
  int* index = w.lane_rows + l * t.max_rows;
  int n = 0;
  for (int r = 0; r < s.rows.max_count; ++r) {
    if ((s.rows.valid[r] >> l & 1) != 0) index[n++] = r;
  }
  const int stride = (n + 3) / 4 * 4;
  double* vectors = w.vectors + l * SolverScratch::kVectors * w.capacity;
  const auto vector = [&](int i) { return vectors + i * stride; };
  LaneProblem p{l,         n,         stride,    w.dense + l * w.capacity * w.capacity,
                vector(0), vector(1), vector(2), vector(3),
                vector(4), vector(5), vector(6), w.own_order + l * w.capacity,
                scale};
  for (int i = 0; i < n; ++i) {
    p.b[i] = At(w.b[index[i]], l);
    p.force[i] = At(s.rows.force[index[i]], l);
    for (int j = 0; j <= i; ++j) {
      const double entry = At(LowerTriangle(w.A, index[i], index[j]), l);
      p.A[i * stride + j] = p.A[j * stride + i] = entry;
    }
  }
  return p;
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
  Lane inertia = Splat(0);
  for (int i = 0; i < t.nv; ++i) {
    inertia = inertia + s.M[t.M_rowadr[i] + t.M_rownnz[i] - 1];
  }
  const Lane scale = 1.0 / Max(inertia, Splat(kMinVal));
  LaneProblem problems[kWidth] = {};
  int count = 0;
  for (int l = 0; l < kWidth; ++l) {
    if (s.rows.count[l] == 0 || (s.redo >> l & 1) != 0) continue;
    problems[count++] = Extract(t, s, l, At(scale, l));
  }
  Solve(t, s.solver.orders, problems, count);
  for (int k = 0; k < count; ++k) {
    const LaneProblem& p = problems[k];
    const int* index = s.solver.lane_rows + p.lane * t.max_rows;
    for (int i = 0; i < p.n; ++i) At(s.rows.force[index[i]], p.lane) = p.force[i];
  }
  Finish(t, s);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
