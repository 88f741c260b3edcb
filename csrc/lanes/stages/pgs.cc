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
double DotScalar(const double* a, const double* b, int n) {
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

// The generator that shuffles the order in which rows are visited; seeded anew at each solve.
class Pcg32 {
 public:
  Pcg32() { Next(); }
  uint32_t Next() {
    const uint64_t old = state_;
    state_ = old * 6364136223846793005ULL + 1;
    const auto mixed = static_cast<uint32_t>(((old >> 18u) ^ old) >> 27u);
    const auto turn = static_cast<uint32_t>(old >> 59u);
    return (mixed >> turn) | (mixed << ((-turn) & 31));
  }
  void Shuffle(int* order, int n) {
    for (int i = n - 1; i > 0; --i) {
      const uint32_t j = Next() % static_cast<uint32_t>(i + 1);
      const int other = order[i];
      order[i] = order[j];
      order[j] = other;
    }
  }

 private:
  uint64_t state_ = 0;
};

// One lane's problem and its working vectors, all of length n.
struct LaneProblem {
  int n, stride;
  const double* A;  // (n, stride), symmetric
  const double* b;
  double *force, *inverse_diagonal, *diagonal, *previous, *extrapolated;
  int* order;
};

// force from momentum, projected; `steps` counts from the last restart.
void Extrapolate(const LaneProblem& p, int steps, bool first) {
  const double beta = first ? 0 : static_cast<double>(steps - 1) / static_cast<double>(steps + 2);
  for (int i = 0; i < p.n; ++i) {
    const double now = p.force[i];
    if (beta > 0) {
      const double ahead = now + beta * (now - p.previous[i]);
      p.force[i] = ahead < 0 ? 0 : ahead;
    }
    p.previous[i] = now;
    p.extrapolated[i] = p.force[i];
  }
}

// Minimizes over each row's force in turn; returns by how much the cost fell.
double Sweep(const LaneProblem& p) {
  double improvement = 0;
  for (int k = 0; k < p.n; ++k) {
    const int i = p.order[k];
    const double gradient = p.b[i] + DotScalar(p.A + i * p.stride, p.force, p.n);
    const double old = p.force[i];
    double force = old - gradient * p.inverse_diagonal[i];
    force = force < 0 ? 0 : force;
    const double delta = force - old;
    double change = 0.5 * delta * delta * p.diagonal[i] + delta * gradient;
    if (change > 1e-10) {
      force = old;
      change = 0;
    }
    p.force[i] = force;
    improvement -= change;
  }
  return improvement;
}

// Whether the sweep went against the extrapolation.
bool Opposed(const LaneProblem& p) {
  double along = 0;
  for (int i = 0; i < p.n; ++i) {
    const double correction = p.force[i] - p.extrapolated[i];
    const double extrapolation = p.extrapolated[i] - p.previous[i];
    along += correction * extrapolation;
  }
  return along < 0;
}

void SolveLane(const Tables& t, const LaneProblem& p, double scale) {
  for (int i = 0; i < p.n; ++i) {
    p.inverse_diagonal[i] = 1 / p.A[i * p.stride + i];
    p.diagonal[i] = 1 / p.inverse_diagonal[i];
    p.previous[i] = p.force[i];
    p.order[i] = i;
  }
  Pcg32 random;
  int steps = 0;
  for (int iteration = 0; iteration < t.iterations; ++iteration) {
    Extrapolate(p, steps, iteration == 0);
    random.Shuffle(p.order, p.n);
    const double improvement = Sweep(p) * scale;
    steps = iteration > 0 && Opposed(p) ? 0 : steps + 1;
    if (improvement < t.tolerance) return;
  }
}

// ---- in lanes -----------------------------------------------------------------------------------

Lane& LowerTriangle(Lane* A, int i, int j) { return A[i * (i + 1) / 2 + j]; }

// A = Y Yᵀ + R with Y = J L⁻¹ D^-½; b = J qacc_smooth - aref; warm-started forces.
void MakeProblem(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  SolverScratch& w = s.solver;
  const int nv = t.nv;
  Lane sqrt_inverse[kMaxDofs];
  for (int i = 0; i < nv; ++i) {
    sqrt_inverse[i] = 1.0 / Sqrt(s.qLD[t.M_rowadr[i] + t.M_rownnz[i] - 1]);
  }
  for (int r = 0; r < rows.max_count; ++r) {
    const Lane* J = rows.J + r * nv;
    Lane* y = w.Y + r * nv;
    for (int i = 0; i < nv; ++i) y[i] = J[i];
    for (int i = nv - 1; i > 0; --i) {
      const int begin = t.M_rowadr[i];
      for (int a = begin; a < begin + t.M_rownnz[i] - 1; ++a) {
        y[t.M_colind[a]] = y[t.M_colind[a]] - s.qLD[a] * y[i];
      }
    }
    for (int i = 0; i < nv; ++i) y[i] = y[i] * sqrt_inverse[i];
    for (int q = 0; q <= r; ++q) {
      const Lane* other = w.Y + q * nv;
      Lane sum = y[0] * other[0];
      for (int i = 1; i < nv; ++i) sum = sum + y[i] * other[i];
      LowerTriangle(w.A, r, q) = sum;
    }
    LowerTriangle(w.A, r, r) = LowerTriangle(w.A, r, r) + rows.R[r];
    w.b[r] = Dot(J, s.qacc_smooth, nv) - rows.aref[r];
    w.residual[r] = Dot(J, s.qacc_warmstart, nv) - rows.aref[r];
    rows.force[r] = Select(w.residual[r] < 0.0, -rows.D[r] * w.residual[r], Splat(0));
  }
}

// Takes one lane's problem out of the lanes, solves it, and puts the forces back.
void SolveOneLane(const Tables& t, Scratch& s, int l, double scale) {
  SolverScratch& w = s.solver;
  const int stride = w.stride;
  int* index = w.lane_rows;
  int n = 0;
  for (int r = 0; r < s.rows.max_count; ++r) {
    if ((w.row_lanes[r] >> l & 1) != 0) index[n++] = r;
  }
  double *b = w.lane_b, *force = w.lane_force, *product = w.lane_product;
  for (int i = 0; i < n; ++i) {
    b[i] = At(w.b[index[i]], l);
    force[i] = At(s.rows.force[index[i]], l);
    for (int j = 0; j <= i; ++j) {
      const double entry = At(LowerTriangle(w.A, index[i], index[j]), l);
      w.dense[i * stride + j] = w.dense[j * stride + i] = entry;
    }
  }
  // no warm start if it is worse than no force
  double cost = DotScalar(force, b, n);
  for (int i = 0; i < n; ++i) product[i] = DotScalar(w.dense + i * stride, force, n);
  cost += 0.5 * DotScalar(force, product, n);
  if (cost > 0) {
    for (int i = 0; i < n; ++i) force[i] = 0;
  }
  SolveLane(t,
            {n, stride, w.dense, b, force, w.inverse_diagonal, w.diagonal, w.previous_force,
             w.extrapolated, w.order},
            scale);
  for (int i = 0; i < n; ++i) At(s.rows.force[index[i]], l) = force[i];
}

// qacc from the forces: mj_dualFinish.
void Finish(const Tables& t, Scratch& s) {
  Rows& rows = s.rows;
  for (int r = 0; r < rows.max_count; ++r) {
    rows.force[r] = Select(rows.valid[r], rows.force[r], Splat(0));
    if (!Any(rows.force[r] != 0.0)) continue;
    const Lane* J = rows.J + r * t.nv;
    for (int i = 0; i < t.nv; ++i) {
      s.qfrc_constraint[i] = s.qfrc_constraint[i] + J[i] * rows.force[r];
    }
  }
  Lane* acc = s.acc;
  for (int i = 0; i < t.nv; ++i) acc[i] = s.qfrc_constraint[i];
  SolveFactored(t, acc, s.qLD, s.qLDiagInv, 0, t.nv);
  for (int i = 0; i < t.nv; ++i) {
    s.qacc[i] = Select(rows.any, acc[i] + s.qacc_smooth[i], s.qacc_smooth[i]);
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
  for (int r = 0; r < s.rows.max_count; ++r) s.solver.row_lanes[r] = Bits(s.rows.valid[r]);
  for (int l = 0; l < kWidth; ++l) {
    if (s.rows.count[l] == 0 || (s.redo >> l & 1) != 0) continue;
    SolveOneLane(t, s, l, At(scale, l));
  }
  Finish(t, s);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
