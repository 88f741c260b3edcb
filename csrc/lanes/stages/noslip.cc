// Forces of friction that hold without slipping, after the solver's: mj_solNoSlip. Sweeps go over
// dry friction and pairs of opposite edges of pyramids, and take constraints for hard.
#include "lanes/stages/dual.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

constexpr double kLeastDiagonal = 1e-10;  // of a block of A

double Residual(const LaneProblem& p, int i) {
  const double soft = p.b[i] + p.Product(i);
  return soft - p.R[i] * p.force[i];
}

double HardDiagonal(const LaneProblem& p, int i, double least) {
  const double hard = p.A[i * p.stride + i] - p.R[i];
  return hard > least ? hard : least;
}

// Minimizes over the force of a row of dry friction; returns how much that lowers the cost.
double HoldDryFriction(LaneProblem& p, int i) {
  const double residual = Residual(p, i), old = p.force[i];
  const double inverse = 1 / HardDiagonal(p, i, kMinVal);
  p.force[i] = p.Bounded(i, old - residual * inverse);
  const double delta = p.force[i] - old;
  return 0.5 * delta * delta / inverse + delta * residual;
}

// The same over the difference of two opposite edges, whose sum stays.
double HoldEdges(LaneProblem& p, int i) {
  double* f = p.force + i;
  const double residual[2] = {Residual(p, i), Residual(p, i + 1)}, old[2] = {f[0], f[1]};
  const double A[4] = {HardDiagonal(p, i, kLeastDiagonal), p.A[i * p.stride + i + 1],
                       p.A[(i + 1) * p.stride + i], HardDiagonal(p, i + 1, kLeastDiagonal)};
  const double b0 = residual[0] - DotScalar(A, old, 2), b1 = residual[1] - DotScalar(A + 2, old, 2);
  const double mid = 0.5 * (f[0] + f[1]);
  const double curvature = A[0] + A[3] - A[1] - A[2];
  const double slope = mid * (A[0] - A[3]) + b0 - b1;
  if (curvature < kMinVal) {
    f[0] = f[1] = mid;
  } else if (const double y = -slope / curvature; y < -mid) {
    f[0] = 0;
    f[1] = 2 * mid;
  } else if (y > mid) {
    f[0] = 2 * mid;
    f[1] = 0;
  } else {
    f[0] = mid + y;
    f[1] = mid - y;
  }
  const double delta[2] = {f[0] - old[0], f[1] - old[1]};
  double quadratic = 0;
  for (int k = 0; k < 2; ++k) quadratic += delta[k] * DotScalar(A + 2 * k, delta, 2);
  const double change = 0.5 * quadratic + DotScalar(delta, residual, 2);
  if (!(change > 1e-10)) return change;
  f[0] = old[0];
  f[1] = old[1];
  return 0;
}

}  // namespace

void LaneProblem::RemoveSlip(const Tables& t) {
  for (int iteration = 0; iteration < t.noslip_iterations; ++iteration) {
    double gain = 0;
    for (int c = 0; iteration == 0 && c < count; ++c) {
      const double f = force[rows[c]];
      gain += 0.5 * f * f * R[rows[c]];
    }
    for (int c = 0; c < count; ++c) {
      const int i = rows[c];
      if (slip[i] == Slip::kDry) gain -= HoldDryFriction(*this, i);
    }
    for (int c = 0; c < count; ++c) {
      if (slip[rows[c]] == Slip::kEdge) gain -= HoldEdges(*this, rows[c]);
    }
    if (gain * scale < t.noslip_tolerance) return;
  }
}

void RemoveSlip(const Tables& t, Scratch& s) {
  if (s.rows.max_count == 0) return;
  MakeDualProblem(t, s);
  LaneProblem problems[kMaxProblems];
  const int count = ExtractProblems(t, s, /*begins=*/false, problems);
  for (int k = 0; k < count; ++k) problems[k].RemoveSlip(t);
  FinishDual(t, s, problems, count);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
