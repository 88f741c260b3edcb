#include "lanes/stages/cones.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

constexpr int kMaxRows = 6;

// Calls function<N>() with N = num_rows, so that its loops are unrolled: condim 3, 4 or 6.
template <class Function>
[[gnu::always_inline]] inline void ForRows(int num_rows, Function function) {
  if (num_rows == 3) return function.template operator()<3>();
  if (num_rows == 4) return function.template operator()<4>();
  function.template operator()<6>();
}

// A cone at some residuals, in the space where it is circular.
struct ConeState {
  ConeState(const Rows& rows, int cone, const Lane* residual);

  int first, num_rows;
  Lane mu;
  const Lane* friction;  // (num_rows - 1)
  Lane U[kMaxRows] = {};
  Lane N, T;
  Mask slack, sticks, slides;  // in lanes that have it

  Lane Dm(const Rows& rows) const { return rows.D[first] / (mu * mu * (1.0 + mu * mu)); }
};

ConeState::ConeState(const Rows& rows, int cone, const Lane* residual)
    : first(rows.cones.first_row[cone]),
      num_rows(rows.cones.num_rows[cone]),
      mu(rows.cones.mu[cone]),
      friction(rows.cones.friction + kFrictions * cone) {
  U[0] = residual[first] * mu;
  for (int j = 1; j < num_rows; ++j) U[j] = residual[first + j] * friction[j - 1];
  N = U[0];
  Lane squared = Dot(U + 1, U + 1, num_rows - 1);
  if (num_rows == 6) {  // sums over three directions are grouped otherwise than over five
    const Mask four = FromBits(rows.valid[first + 3] & ~rows.valid[first + 4]);
    squared = Select(four, Dot(U + 1, U + 1, 3), squared);
  }
  T = Sqrt(squared);
  const Mask has = FromBits(LanesWithCone(rows, cone));
  const Mask above = (N >= mu * T) | ((T <= 0.0) & (N >= 0.0));
  const Mask below = (mu * N + T <= 0.0) | ((T <= 0.0) & (N < 0.0));
  slack = has & above;
  sticks = has & !above & below;
  slides = has & !above & !below;
}

}  // namespace

Lane AddConeCost(const Rows& rows, int cone, const Lane* residual, Lane cost) {
  const ConeState s(rows, cone, residual);
  Lane stuck = cost;
  for (int r = s.first; r < s.first + s.num_rows; ++r) {
    stuck = stuck + 0.5 * rows.D[r] * residual[r] * residual[r];
  }
  const Lane gap = s.N - s.mu * s.T;
  const Lane sliding = cost + 0.5 * s.Dm(rows) * gap * gap;
  return Select(s.sticks, stuck, Select(s.slides, sliding, cost));
}

unsigned UpdateCone(Rows& rows, int cone, const Lane* residual) {
  const ConeState s(rows, cone, residual);
  const Mask has = s.slack | s.sticks | s.slides;
  const unsigned sticks = Bits(s.sticks) & kAllLanes;
  const Lane normal = -s.Dm(rows) * (s.N - s.mu * s.T) * s.mu;
  for (int j = 0; j < s.num_rows; ++j) {
    const int r = s.first + j;
    const Lane slides = j == 0 ? normal : -normal * (s.U[j] / s.T) * s.friction[j - 1];
    const Lane force =
        Select(s.slides, slides, Select(s.sticks, -rows.D[r] * residual[r], Splat(0)));
    // the first row is a plain one in lanes without the cone
    rows.force[r] = j == 0 ? Select(has, force, rows.force[r]) : force;
    rows.active[r] = (j == 0 ? rows.active[r] & ~Bits(has) : 0) | sticks;
  }
  return Bits(s.slides) & kAllLanes;
}

ConeLine PrepareConeLine(const Rows& rows, int cone, const Lane* residual, const Lane* direction) {
  const int first = rows.cones.first_row[cone];
  const Lane* friction = rows.cones.friction + kFrictions * cone;
  ConeLine line;
  line.num_rows = rows.cones.num_rows[cone];
  line.has_cone = FromBits(LanesWithCone(rows, cone));
  line.mu = rows.cones.mu[cone];
  const Lane mu2 = line.mu * line.mu;
  line.Dm = rows.D[first] / (mu2 * (1.0 + mu2));
  line.quad0 = line.quad1 = line.quad2 = Splat(0);
  Lane squared = Splat(0);
  for (int j = 0; j < line.num_rows; ++j) {
    const Lane D = rows.D[first + j], x = residual[first + j], dir = direction[first + j];
    const Lane weighted = D * x;
    line.quad0 = line.quad0 + x * weighted;
    line.quad1 = line.quad1 + dir * weighted;
    line.quad2 = line.quad2 + dir * D * dir;
    const Lane scale = j == 0 ? line.mu : friction[j - 1];
    line.U[j] = x * scale;
    line.V[j] = dir * scale;
    if (j > 0) squared = squared + line.U[j] * line.U[j];
  }
  line.T = Sqrt(squared);
  line.quad0 = line.quad0 * 0.5;
  line.quad2 = line.quad2 * 0.5;
  return line;
}

namespace {

// Where on the line a cone is.
struct Zone {
  Zone(Lane mu, Lane N, Lane T) {
    const Mask flat = T <= 0.0, above = N >= mu * T, below = mu * N + T <= 0.0;
    slack = (flat & !(N < 0.0)) | (above & !flat);
    sticks = (flat & (N < 0.0)) | (below & !above & !flat);
    slides = !flat;
    slides = slides & !above & !below;
  }
  Mask slack, sticks, slides;
};

// A point on the line of a cone.
struct ConePoint {
  ConePoint(const ConeLine& c, Lane alpha, int num_rows);

  Lane N, T;
  Lane X[6];              // U + alpha V
  Lane XV;                // products of friction's directions
  Lane change_of_square;  // of T² from that at 0
};

[[gnu::always_inline]] inline ConePoint::ConePoint(const ConeLine& c, Lane alpha, int num_rows)
    : N(alpha * c.V[0] + c.U[0]), XV(Splat(0)), change_of_square(Splat(0)) {
  Lane squared = Splat(0);
#pragma GCC unroll 6
  for (int j = 1; j < num_rows; ++j) {
    const Lane step = alpha * c.V[j];
    X[j] = step + c.U[j];
    squared = squared + X[j] * X[j];
    XV = XV + X[j] * c.V[j];
    change_of_square = change_of_square + step * (c.U[j] + X[j]);
  }
  T = Sqrt(squared);
}

// The cost from one zone to another, less that at 0; terms that would cancel are left out. Here as
// below, what asks for divisions is left out where none of `lanes` needs it.
Lane Difference(const ConeLine& c, const Zone& start, const Zone& end, const ConePoint& p,
                Lane alpha, unsigned lanes) {
  const Lane gap_start = c.U[0] - c.mu * c.T, gap = p.N - c.mu * p.T;
  const Lane edge_start = c.mu * c.U[0] + c.T, edge = c.mu * p.N + p.T;
  const Lane stuck = alpha * alpha * c.quad2 + alpha * c.quad1;
  const Lane stuck_too = alpha * (alpha * c.quad2 + c.quad1);
  const Lane half_Dm = 0.5 * c.Dm;
  Lane r = Splat(0);
  const auto from_to = [&](Mask from, Mask to, Lane cost) { r = Select(from & to, cost, r); };
  from_to(start.sticks, end.sticks, stuck);
  if ((Bits(start.slides & end.slides) & lanes) != 0) {
    const Lane T_change = p.change_of_square / (p.T + c.T);
    const Lane gap_change = alpha * c.V[0] - c.mu * T_change;
    from_to(start.slides, end.slides, half_Dm * gap_change * (2.0 * gap_start + gap_change));
  }
  from_to(start.slides, end.sticks, stuck_too + half_Dm * edge_start * edge_start);
  from_to(start.sticks, end.slides, stuck_too - half_Dm * edge * edge);
  from_to(start.slack, end.sticks, stuck + c.quad0);
  from_to(start.slack, end.slides, half_Dm * gap * gap);
  from_to(start.slides, end.slack, -half_Dm * gap_start * gap_start);
  from_to(start.sticks, end.slack, -c.quad0);
  return r;
}

// How fast the direction of friction turns along the line: Σ (t_i V_j - V_i t_j)² with t = X / T.
[[gnu::always_inline]] inline Lane TurningSquared(const ConeLine& c, const ConePoint& p,
                                                  int num_rows) {
  Lane sum = Splat(0), t[6];
#pragma GCC unroll 6
  for (int j = 1; j < num_rows; ++j) t[j] = p.X[j] / p.T;
#pragma GCC unroll 6
  for (int i = 1; i < num_rows; ++i) {
#pragma GCC unroll 6
    for (int j = i + 1; j < num_rows; ++j) {
      const Lane cross = t[i] * c.V[j] - c.V[i] * t[j];
      sum = sum + cross * cross;
    }
  }
  return sum;
}

[[gnu::always_inline]] inline void AddPoint(const ConeLine& c, Lane alpha, unsigned lanes,
                                            int num_rows, Lane* cost, Lane* slope,
                                            Lane* curvature) {
  const ConePoint p(c, alpha, num_rows);
  const Zone start(c.mu, c.U[0], c.T), end(c.mu, p.N, p.T);
  *cost = Select(c.has_cone, *cost + Difference(c, start, end, p, alpha, lanes), *cost);
  const Mask sticks = c.has_cone & end.sticks, slides = c.has_cone & end.slides;
  const Lane slope_stuck = *slope + (2.0 * alpha * c.quad2 + c.quad1);
  const Lane curvature_stuck = *curvature + 2.0 * c.quad2;
  if ((Bits(slides) & lanes) != 0) {
    const Lane gap = p.N - c.mu * p.T, gap_slope = c.V[0] - c.mu * (p.XV / p.T);
    const Lane bend = (p.N / p.T - c.mu) * (c.mu * TurningSquared(c, p, num_rows));
    *slope = Select(slides, *slope + c.Dm * gap * gap_slope, *slope);
    const Lane curved = *curvature + c.Dm * (gap_slope * gap_slope - bend);
    *curvature = Select(slides, curved, *curvature);
  }
  *slope = Select(sticks, slope_stuck, *slope);
  *curvature = Select(sticks, curvature_stuck, *curvature);
}

}  // namespace

void AddConePoint(const ConeLine& c, Lane alpha, unsigned lanes, Lane* cost, Lane* slope,
                  Lane* curvature) {
  ForRows(c.num_rows, [&]<int N>() { AddPoint(c, alpha, lanes, N, cost, slope, curvature); });
}

namespace {

// The lower triangle, by rows of n = s.num_rows, of a sliding cone's Hessian.
[[gnu::always_inline]] inline void LocalHessian(const Rows& rows, const ConeState& s, int n,
                                                Lane* H) {
  const Lane Dm = s.Dm(rows);
  const Lane bend = s.mu * (s.N / s.T), across = s.mu * s.mu - bend;
  Lane t[kMaxRows];  // the direction of friction
#pragma GCC unroll 6
  for (int j = 1; j < n; ++j) t[j] = s.U[j] / s.T;
#pragma GCC unroll 6
  for (int i = 0; i < n; ++i) {
#pragma GCC unroll 6
    for (int j = 0; j <= i; ++j) {
      Lane entry = j > 0 ? bend * t[i] * t[j] : i > 0 ? -s.mu * t[i] : Splat(1);
      if (i == j && i > 0) entry = entry + across;
      const Lane scale = Dm * (j == 0 ? s.mu : s.friction[j - 1]);
      H[i * n + j] = entry * (scale * (i == 0 ? s.mu : s.friction[i - 1]));
    }
  }
}

// mju_cholFactor, which raises what is not positive enough: a sliding cone is flat in a direction.
[[gnu::always_inline]] inline void Factor(Lane* L, int n) {
#pragma GCC unroll 6
  for (int j = 0; j < n; ++j) {
    Lane* row = L + j * n;
    Lane diagonal = row[j];
    if (j > 0) diagonal = diagonal - Dot(row, row, j);
    const Mask low = diagonal < kMinVal;
    row[j] = Sqrt(Select(low, Splat(kMinVal), diagonal));
    const Lane inverse = 1.0 / row[j];
#pragma GCC unroll 6
    for (int i = j + 1; i < n; ++i) {
      const Lane entry = (L[i * n + j] - Dot(L + i * n, row, j)) * inverse;
      L[i * n + j] = Select(low, Splat(0), entry);
    }
  }
}

[[gnu::always_inline]] inline void MakeUpdate(const Rows& rows, const ConeState& s, int num_rows,
                                              const Jacobian& jacobian, Lane* x) {
  Lane L[kMaxRows * kMaxRows];
  LocalHessian(rows, s, num_rows, L);
  Factor(L, num_rows);
  uint64_t dofs = 0;
  for (int r = s.first; r < s.first + num_rows; ++r) dofs |= jacobian.dofs[r] >> jacobian.first;
  const Lane* J = jacobian.J + s.first * jacobian.stride;
  for (int i = 0; i < jacobian.n; ++i) {
    if ((dofs >> i & 1) == 0) {
      for (int c = 0; c < num_rows; ++c) x[c * jacobian.n + i] = Splat(0);
      continue;
    }
#pragma GCC unroll 6
    for (int c = 0; c < num_rows; ++c) {
      Lane sum = Splat(0);
#pragma GCC unroll 6
      for (int r = c; r < num_rows; ++r) {
        sum = sum + J[r * jacobian.stride + i] * L[r * num_rows + c];
      }
      x[c * jacobian.n + i] = sum;
    }
  }
}

}  // namespace

void ConeUpdate(const Rows& rows, int cone, const Lane* residual, const Jacobian& jacobian,
                Lane* x) {
  const ConeState s(rows, cone, residual);
  ForRows(s.num_rows, [&]<int N>() { MakeUpdate(rows, s, N, jacobian, x); });
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
