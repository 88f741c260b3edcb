// The dual problem by projected Gauss-Seidel with Nesterov momentum: mj_solPGS.
//
// Sweeps of lanes run side by side.
#include "lanes/stages/blas.h"
#include "lanes/stages/dual.h"
#include "lanes/stages/rows.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

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

}  // namespace

void LaneProblem::Begin() {
  // no warm start if it is worse than no force
  double cost = DotScalar(force, b, n);
  for (int i = 0; i < n; ++i) product[i] = Product(i);
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

// One or four forces from momentum, projected.
template <class T>
void LaneProblem::ExtrapolatePart(int i, double beta) {
  T& f = Part<T>(force, i);
  const T now = f;
  if (beta > 0) f = Bounded(i, now + beta * (now - Part<T>(previous, i)));
  Part<T>(previous, i) = now;
  Part<T>(extrapolated, i) = f;
}

void LaneProblem::Extrapolate(bool first) {
  const double beta = first ? 0 : static_cast<double>(steps - 1) / static_cast<double>(steps + 2);
  if (count == n) {
    for (int i = 0; i < stride; i += 4) ExtrapolatePart<Quad>(i, beta);
  } else {
    for (int c = 0; c < count; ++c) ExtrapolatePart<double>(rows[c], beta);
  }
}

using QuadMask = long long __attribute__((vector_size(32)));
constexpr QuadMask kOnly[] = {{-1, 0, 0, 0}, {0, -1, 0, 0}, {0, 0, -1, 0}, {0, 0, 0, -1}};

// Minimizes over one row's force.
inline void LaneProblem::Visit(int i) {
  const double gradient = b[i] + Product(i);
  const double old = force[i];
  const double wanted = Bounded(i, old - gradient * inverse_diagonal[i]);
  const double delta = wanted - old;
  const double change = 0.5 * delta * delta * diagonal[i] + delta * gradient;
  if (change > 1e-10) return;
  improvement -= change;
  // stored as four, since loads of four would wait for a smaller store to leave for the cache
  Quad& four = Part<Quad>(force, i & ~3);
  four = kOnly[i & 3] ? Quad{wanted, wanted, wanted, wanted} : four;
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

namespace {

// Sweeps of several lanes and islands side by side: each is a chain in which every operation waits
// for the last, so the processor has time for the others'.
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

// The forces of the warm start.
void StartForces(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  for (int r = 0; r < rows.max_count; ++r) {
    const Lane residual = Dot(rows.J + r * t.nv, s.qacc_warmstart, t.nv) - rows.aref[r];
    if (!t.starts_warm) {
      rows.force[r] = Splat(0);
      continue;
    }
    rows.force[r] = -rows.D[r] * residual;
    if (r >= FirstInequality(t)) {
      rows.force[r] = Select(residual < 0.0, rows.force[r], Splat(0));
    } else if (r >= t.num_equality_rows) {
      const Lane loss = LossOf(t, s, r), bound = rows.R[r] * loss;
      const Lane above = Select(residual >= bound, -loss, rows.force[r]);
      rows.force[r] = Select(residual <= -bound, loss, above);
    }
  }
}

}  // namespace

void SolvePGS(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) {
    s.qacc[i] = s.qacc_smooth[i];
    s.qfrc_constraint[i] = Splat(0);
  }
  if (s.rows.max_count == 0) return;
  MakeDualProblem(t, s);
  StartForces(t, s);
  LaneProblem problems[kMaxProblems];
  const int count = ExtractProblems(t, s, /*begins=*/true, problems);
  Solve(t, s.solver.orders, problems, count);
  for (int k = 0; k < count; ++k) problems[k].RemoveSlip(t);
  FinishDual(t, s, problems, count);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
