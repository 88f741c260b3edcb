// The primal problem by Newton's method with exact line searches: mj_solNewton on one island.
//
// minimize ½ (a - a_smooth)ᵀ M (a - a_smooth) + Σ ½ D (J a - aref)² over rows with J a < aref; the
// cost of dry friction goes on in a straight line where its force would be larger than the loss.
//
// All lanes iterate together; a lane that has converged stands still (its step length is zero)
// until the last one has.
#include "lanes/stages/newton.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/cholesky.h"
#include "lanes/stages/cones.h"
#include "lanes/stages/jacobian.h"
#include "lanes/stages/line_search.h"
#include "lanes/stages/rows.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"
#include "lanes/stages/updates.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// Σ ½ D r² over rows that are pushed against, and what dry friction and cones cost.
Lane ConstraintCost(const Tables& t, const Scratch& s, const Lane* residual) {
  const Rows& rows = s.rows;
  Lane cost = Splat(0);
  for (int r = 0; r < t.num_equality_rows; ++r) {
    cost = cost + 0.5 * rows.D[r] * residual[r] * residual[r];
  }
  for (int r = t.num_equality_rows; r < FirstInequality(t); ++r) {
    const Lane x = residual[r], R = rows.R[r], f = LossOf(t, s, r);
    const Lane low = -0.5 * R * f * f - f * x, high = -0.5 * R * f * f + f * x;
    const Lane outside = Select(x <= -R * f, low, high);
    const Mask inside = (x > -R * f) & (x < R * f);
    cost = cost + Select(inside, 0.5 * rows.D[r] * x * x, outside);
  }
  ConeWalk walk(rows.cones);
  for (int r = FirstInequality(t); r < rows.max_count; ++r) {
    const Lane quadratic = 0.5 * rows.D[r] * residual[r] * residual[r];
    const Lane without_cone = cost + Select(residual[r] < 0.0, quadratic, Splat(0));
    const int cone = walk.At(r);
    if (cone < 0) {
      cost = without_cone;
      continue;
    }
    const Mask has_cone = FromBits(LanesWithCone(rows, cone));
    cost = Select(has_cone, AddConeCost(rows, cone, residual, cost), without_cone);
    r += rows.cones.num_rows[cone] - 1;
  }
  return cost;
}

// Residuals of both starts.
struct Residuals {
  Lane *warm, *cold;  // (max_rows)
};

// ½ d·M d for d = qacc_warmstart - qacc_smooth, as MuJoCo rounds it.
Lane CostOfWarmStart(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) s.search[i] = s.qacc_warmstart[i] - s.qacc_smooth[i];
  Run(RecordedStage::kSearchProduct, t, s);
  return 0.5 * Dot(s.search, s.Mv, t.nv);
}

// Lanes whose start without constraints costs less, given what constraints cost at both, and
// Ma = M qacc_warmstart. M d = Ma - qfrc_smooth but for rounding, of at most so many last places of
// |M| |qacc|, so that another product is needed only where both cost the same within that.
Mask ColdIsBetter(const Tables& t, Scratch& s, Lane warm, Lane cold) {
  constexpr double kRounding = 1e-12;
  Lane twice = Splat(0), trace = Splat(0), apart = Splat(0), size = Splat(0);
  for (int i = 0; i < t.nv; ++i) {
    const Lane d = s.qacc_warmstart[i] - s.qacc_smooth[i];
    twice = twice + (s.Ma[i] - s.qfrc_smooth[i]) * d;
    trace = trace + s.M[t.M_rowadr[i] + t.M_rownnz[i] - 1];  // no entry of M is larger
    apart = apart + Abs(d);
    size = size + (Abs(s.qacc_warmstart[i]) + Abs(s.qacc_smooth[i]));
  }
  const Lane gauss = 0.5 * twice, excess = (gauss + warm) - cold;
  const Lane rounding = kRounding * (trace * size * apart + Abs(gauss) + warm + cold);
  const Mask sure = Abs(excess) > rounding;
  if ((s.rows.any & ~s.redo & ~Bits(sure)) == 0) return excess > 0.0;
  return CostOfWarmStart(t, s) + warm > cold;
}

// qacc: in each lane the better of the last step's acceleration and that without constraints, and
// this on dofs that are not constrained; Ma = M qacc on those that are. `constrained`: of each dof,
// bits of lanes. Returns lanes that start cold, and the residuals of both.
Mask ChooseStart(const Tables& t, Scratch& s, const unsigned* constrained, Residuals& residuals) {
  const Rows& rows = s.rows;
  const Jacobian all{rows.J, t.nv, rows.max_count, t.nv, rows.dofs, 0};
  const JacobianProducts& products = JacobianProductsOfSize(t.nv);
  residuals = {s.solver.direction, s.solver.residual};
  products.multiply(all, s.qacc_warmstart, rows.aref, residuals.warm);
  products.multiply(all, s.qacc_smooth, rows.aref, residuals.cold);
  for (int r = 0; r < rows.max_count; ++r) s.redo |= LanesWithBadRow(rows, r, residuals.cold[r]);
  for (int i = 0; i < t.nv; ++i) s.qacc[i] = s.qacc_warmstart[i];
  Run(RecordedStage::kAccelerationProduct, t, s);
  const Lane warm = ConstraintCost(t, s, residuals.warm);
  const Mask cold = ColdIsBetter(t, s, warm, ConstraintCost(t, s, residuals.cold)) |
                    FromBits(~rows.any & kAllLanes);
  for (int i = 0; i < t.nv; ++i) {
    const Mask smooth = cold | FromBits(~constrained[i] & kAllLanes);
    s.qacc[i] = Select(smooth, s.qacc_smooth[i], s.qacc[i]);
  }
  if ((Bits(cold) & rows.any) != 0) Run(RecordedStage::kAccelerationProduct, t, s);
  return cold;
}

class Newton {
 public:
  // Of the dofs [first, first + n).
  Newton(const Tables& t, Scratch& s, int first, int n)
      : t_(t),
        s_(s),
        rows_(s.rows),
        w_(s.solver),
        num_rows_(s.rows.max_count),
        first_inequality_(FirstInequality(t)),
        first_(first),
        n_(n),
        cholesky_(CholeskyOfSize(n_)),
        jacobian_(JacobianProductsOfSize(n_)) {}

  // From qacc, and Ma = M qacc.
  void Solve() {
    jacobian_.multiply(SolverJacobian(), s_.qacc + first_, rows_.aref, w_.residual);
    Iterations();
  }
  // The same where all residuals are known.
  void Iterations() {
    Begin();
    for (int iteration = 1; done_ != kAllLanes && iteration <= t_.iterations; ++iteration) {
      if (!Iterate(iteration == t_.iterations)) break;
    }
  }

 private:
  Jacobian SolverJacobian() const {
    return {rows_.J + first_, t_.nv, num_rows_, n_, rows_.dofs, first_};
  }

  Lane Loss(int r) const { return LossOf(t_, s_, r); }

  // Forces of rows and of dofs, for the present residuals.
  void UpdateForces() {
    const unsigned* exerting = rows_.active;
    for (int r = 0; r < t_.num_equality_rows; ++r) {
      rows_.active[r] = kAllLanes;
      rows_.force[r] = -rows_.D[r] * w_.residual[r];
    }
    for (int r = t_.num_equality_rows; r < first_inequality_; ++r) {
      const Lane x = w_.residual[r], R = rows_.R[r], f = Loss(r);
      const Mask below = x <= -R * f, above = x >= R * f;
      rows_.active[r] = ~Bits(below | above) & kAllLanes;
      rows_.force[r] = Select(below, f, Select(above, -f, -rows_.D[r] * x));
    }
    for (int r = first_inequality_; r < num_rows_; ++r) {
      const Mask active = w_.residual[r] < 0.0;
      rows_.active[r] = Bits(active) & kAllLanes;
      rows_.force[r] = Select(active, -rows_.D[r] * w_.residual[r], Splat(0));
    }
    if (t_.num_friction_losses > 0 || t_.elliptic) {
      for (int k = 0; k < rows_.cones.count; ++k) {
        w_.sliding[k] = UpdateCone(rows_, k, w_.residual);
      }
      for (int r = 0; r < num_rows_; ++r) {
        w_.exerting[r] = r < first_inequality_ ? kAllLanes : rows_.active[r];
      }
      for (int k = 0; k < rows_.cones.count; ++k) {
        const int first = rows_.cones.first_row[k];
        for (int j = 0; j < rows_.cones.num_rows[k]; ++j) w_.exerting[first + j] |= w_.sliding[k];
      }
      exerting = w_.exerting;
    }
    jacobian_.transposed(SolverJacobian(), rows_.force, exerting, s_.qfrc_constraint + first_);
  }

  void UpdateGradient() {
    for (int i = first_; i < first_ + n_; ++i) {
      w_.gradient[i] = s_.Ma[i] - s_.qfrc_smooth[i] - s_.qfrc_constraint[i];
    }
  }

  Lane GradientNorm() const {
    return scale_ * Sqrt(Dot(w_.gradient + first_, w_.gradient + first_, n_));
  }
  // What a Newton (or a preconditioned gradient) step promises.
  Lane Decrement() const {
    return Max(Splat(0), 0.5 * scale_ * Dot(w_.gradient + first_, w_.Mgrad + first_, n_));
  }

  void UpdateDirection() {
    int count[kWidth] = {};  // of updates for cones that slide
    unsigned some = 0;
    for (int k = 0; k < rows_.cones.count; ++k) {
      some |= w_.sliding[k] & ~done_;
      for (unsigned lanes = w_.sliding[k] & ~done_; lanes != 0; lanes &= lanes - 1) {
        count[__builtin_ctz(lanes)] += rows_.cones.num_rows[k];
      }
    }
    Lane *const direction = w_.Mgrad + first_, *const gradient = w_.gradient + first_;
    if (some == 0) return cholesky_.solve(direction, w_.hessian, gradient, n_);
    const LaneOrder order(count, n_);
    MakeConeHessian(order);
    for (int i = 0; i < n_; ++i) w_.update[i] = order.Ordered(gradient[i]);
    cholesky_.solve(direction, w_.cone_hessian, w_.update, n_);
    for (int i = 0; i < n_; ++i) direction[i] = order.Restored(direction[i]);
  }

  // The Hessian's factor, with that of the cones that slide, its lanes in this order.
  void MakeConeHessian(const LaneOrder& order) {
    for (int i = 0; i < n_; ++i) {  // the lower triangle: nobody reads more
      for (int k = 0; k <= i; ++k) {
        w_.cone_hessian[i * n_ + k] = order.Ordered(w_.hessian[i * n_ + k]);
      }
    }
    Updates updates = UpdatesOf(w_.cone_hessian);
    for (int k = 0; k < rows_.cones.count; ++k) {
      const unsigned sliding = w_.sliding[k] & ~done_;
      if (sliding == 0) continue;
      ConeUpdate(rows_, k, w_.residual, SolverJacobian(), w_.cone_update);
      const int num_rows = rows_.cones.num_rows[k];
      for (int i = 0; order.moves() && i < num_rows * n_; ++i) {
        w_.cone_update[i] = order.Ordered(w_.cone_update[i]);
      }
      updates.Add(w_.cone_update, num_rows, Splat(1), order.Ordered(sliding));
    }
    updates.Finish();  // sums of squares: no rank is lost
  }

  // Of lanes that are done the factor may have been of a matrix that loses rank: they search along
  // nothing, so that nothing of theirs changes.
  void SetSearch() {
    const Mask done = FromBits(done_);
    for (int i = first_; i < first_ + n_; ++i) {
      s_.search[i] = Select(done, Splat(0), w_.Mgrad[i] * -1);
    }
  }

  void Begin() {
    UpdateForces();
    UpdateGradient();
    Lane inertia = Splat(0);
    for (int i = first_; i < first_ + n_; ++i) {
      inertia = inertia + s_.M[t_.M_rowadr[i] + t_.M_rownnz[i] - 1];
    }
    scale_ = 1.0 / Max(inertia, Splat(kMinVal));
    done_ = (~rows_.any & kAllLanes) | s_.redo;
    const unsigned flat = Bits(GradientNorm() < t_.tolerance);
    if ((flat & ~done_) != 0) {
      for (int i = first_; i < first_ + n_; ++i) w_.Mgrad[i] = w_.gradient[i];
      SolveFactored(t_, w_.Mgrad, s_.qLD, s_.qLDiagInv, first_, n_);
      done_ |= flat & Bits(Decrement() < t_.tolerance);
    }
    if ((done_ & kAllLanes) == kAllLanes) return;
    MakeHessian();
    s_.redo |= Bits(cholesky_.factor(w_.hessian, n_)) & ~done_;
    UpdateDirection();
    done_ |= (flat & Bits(Decrement() < t_.tolerance)) | s_.redo;
    SetSearch();
  }

  // The lower triangle of M + Jᵀ D J over active rows.
  void MakeHessian() {
    Lane* H = w_.hessian;
    jacobian_.gram(SolverJacobian(), rows_.D, rows_.active, H);
    for (int i = 0; i < n_; ++i) {
      const int begin = t_.M_rowadr[first_ + i];
      for (int a = begin; a < begin + t_.M_rownnz[first_ + i]; ++a) {
        Lane& entry = H[i * n_ + t_.M_colind[a] - first_];
        entry = entry + s_.M[a];
      }
    }
  }

  // Returns false if no lane is left that moves. `last`: nobody asks for another direction.
  bool Iterate(bool last) {
    const LineResult step = Search();
    done_ |= Bits(step.alpha == 0.0);
    if (done_ == kAllLanes) return false;
    Move(Select(FromBits(done_), Splat(0), step.alpha));
    UpdateForces();
    if (last) return false;
    UpdateGradient();
    const Lane improvement = scale_ * step.improvement;
    done_ |= Bits(((improvement > 0.0) & (improvement < t_.tolerance)) |
                  (GradientNorm() < t_.tolerance)) |
             s_.redo;
    if (done_ == kAllLanes) return false;
    UpdateHessian();
    UpdateDirection();
    done_ |= Bits(Decrement() < t_.tolerance) | s_.redo;
    SetSearch();
    return true;
  }

  // The problem along the search, and the point at 0 on it: no row changes there, so the cost is 0.
  LineProblem PrepareLine(Lane slope_tolerance, LinePoint& start) {
    Run(RecordedStage::kSearchProduct, t_, s_);
    const Lane* search = s_.search + first_;
    jacobian_.multiply(SolverJacobian(), search, nullptr, w_.direction);
    const Lane gauss1 = Dot(search, s_.Ma + first_, n_) - Dot(s_.qfrc_smooth + first_, search, n_);
    const Lane gauss2 = 0.5 * Dot(search, s_.Mv + first_, n_);
    Lane slope = gauss1, half_curvature = gauss2;
    for (int k = 0; k < t_.num_friction_losses; ++k) {
      const int r = t_.num_equality_rows + k;
      w_.loss[k] = Loss(r);
      w_.bound[k] = rows_.R[r] * w_.loss[k];
    }
    for (int k = 0; k < rows_.cones.count; ++k) {
      w_.cone_line[k] = PrepareConeLine(rows_, k, w_.residual, w_.direction);
    }
    for (int r = 0; r < num_rows_; ++r) {
      if (r >= t_.num_equality_rows && r < first_inequality_) continue;  // EvaluateFriction's
      const Lane D = rows_.D[r], residual = w_.residual[r], direction = w_.direction[r];
      const Lane weighted = D * residual;
      w_.quad0[r] = residual * weighted * 0.5;
      w_.quad1[r] = direction * weighted;
      w_.quad2[r] = direction * D * direction * 0.5;
      const Mask active = FromBits(rows_.active[r]);
      slope = slope + Select(active, w_.quad1[r], Splat(0));
      half_curvature = half_curvature + Select(active, w_.quad2[r], Splat(0));
    }
    const LineProblem line = {num_rows_,
                              t_.num_equality_rows,
                              t_.num_friction_losses,
                              w_.loss,
                              w_.bound,
                              w_.residual,
                              w_.direction,
                              rows_.D,
                              w_.quad0,
                              w_.quad1,
                              w_.quad2,
                              gauss1,
                              gauss2,
                              slope_tolerance,
                              t_.ls_iterations,
                              rows_.cones,
                              w_.cone_line};
    if (rows_.cones.count > 0) {
      start = EvaluateLine(line, Splat(0), ~done_);
      return line;
    }
    const FrictionPoint friction = EvaluateFriction(line, Splat(0));
    slope = friction.slope + slope;
    const Lane curvature = friction.curvature + 2.0 * half_curvature;
    start = {Splat(0), Splat(0), slope, Select(curvature <= 0.0, Splat(kMinVal), curvature)};
    return line;
  }

  // Step length and improvement of every lane that is not done.
  LineResult Search() {
    const Lane length = Sqrt(Dot(s_.search + first_, s_.search + first_, n_));
    const Lane slope_tolerance = (t_.tolerance * t_.ls_tolerance) * length / scale_;
    LinePoint start;
    const LineProblem line = PrepareLine(slope_tolerance, start);
    const LinePoint first = EvaluateLine(line, 0.0 - start.slope / start.curvature, ~done_);
    LineResult result = {first.alpha, -first.cost};
    const Mask settled =
        (Abs(first.slope) < slope_tolerance) & ((first.alpha == 0.0) | (first.cost < 0.0));
    const Mask no_direction = length < kMinVal;
    const unsigned open = kAllLanes & ~done_ & ~Bits(settled | no_direction);
    if (open != 0) result = SearchLine(line, start, first, open);
    result.alpha = Select(no_direction, Splat(0), result.alpha);
    result.improvement = Select(no_direction, Splat(0), result.improvement);
    return result;
  }

  void Move(Lane alpha) {
    const Mask moving = FromBits(~done_ & kAllLanes);
    for (int i = first_; i < first_ + n_; ++i) {
      s_.qacc[i] = Select(moving, s_.qacc[i] + s_.search[i] * alpha, s_.qacc[i]);
      s_.Ma[i] = s_.Ma[i] + s_.Mv[i] * alpha;
    }
    for (int r = 0; r < num_rows_; ++r) {
      w_.was_active[r] = rows_.active[r];
      w_.residual[r] = w_.residual[r] + w_.direction[r] * alpha;
    }
  }

  // Adds rows that became active to the Hessian's factor and takes away those that ceased to be.
  void UpdateHessian() {
    Updates updates = UpdatesOf(w_.hessian);
    for (int r = 0; r < num_rows_; ++r) {
      const unsigned changed = (w_.was_active[r] ^ rows_.active[r]) & rows_.valid[r] & ~done_;
      if (changed == 0) continue;
      const Lane* J = rows_.J + r * t_.nv + first_;
      const Lane scale = Sqrt(rows_.D[r]);
      for (int i = 0; i < n_; ++i) w_.update[i] = J[i] * scale;
      const Lane sign = Select(FromBits(rows_.active[r]), Splat(1), Splat(-1));
      updates.Add(w_.update, 1, sign, changed);
    }
    s_.redo |= Bits(updates.Finish()) & ~done_ & kAllLanes;  // MuJoCo would factor anew
  }

  Updates UpdatesOf(Lane* factor) { return {cholesky_, factor, n_, w_.updates, w_.update_signs}; }

  const Tables& t_;
  Scratch& s_;
  Rows& rows_;
  SolverScratch& w_;
  const int num_rows_, first_inequality_, first_, n_;
  const Cholesky& cholesky_;
  const JacobianProducts& jacobian_;
  unsigned done_ = 0;
  Lane scale_;
};

}  // namespace

void ChooseStart(const Tables& t, Scratch& s, const unsigned* constrained) {
  Residuals residuals;
  ChooseStart(t, s, constrained, residuals);
}

void SolveFromStart(const Tables& t, Scratch& s) { Newton(t, s, 0, t.nv).Solve(); }

void SolveOneTree(const Tables& t, Scratch& s, int first, int n) {
  unsigned constrained[kMaxDofs];
  for (int i = 0; i < t.nv; ++i) constrained[i] = i >= first && i < first + n ? kAllLanes : 0;
  Residuals residuals;
  const Mask cold = ChooseStart(t, s, constrained, residuals);
  if (n != t.nv)
    return Newton(t, s, first, n).Solve();  // sums over fewer dofs are grouped otherwise
  for (int r = 0; r < s.rows.max_count; ++r) {
    s.solver.residual[r] = Select(cold, residuals.cold[r], residuals.warm[r]);
  }
  Newton(t, s, first, n).Iterations();
}

void SolveNewton(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nv; ++i) {
    s.qacc[i] = s.qacc_smooth[i];
    s.qfrc_constraint[i] = Splat(0);
  }
  if (s.rows.max_count == 0) return;
  if (t.several_trees) {
    SolveIslands(t, s);
  } else {
    SolveOneTree(t, s, t.first_solver_dof, t.num_solver_dofs);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
