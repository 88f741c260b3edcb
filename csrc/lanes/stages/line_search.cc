#include "lanes/stages/line_search.h"

#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

LinePoint Choose(Mask m, const LinePoint& a, const LinePoint& b) {
  return {Select(m, a.alpha, b.alpha), Select(m, a.cost, b.cost), Select(m, a.slope, b.slope),
          Select(m, a.curvature, b.curvature)};
}

// Lanes go through MuJoCo's search side by side; `open_` are those without a result.
class LineSearch {
 public:
  LineSearch(const LineProblem& problem, const LinePoint& first, unsigned open)
      : p_(problem), evaluations_(Splat(2)), open_(open), result_(first) {}

  LineResult Run(const LinePoint& start, const LinePoint& first) {
    LinePoint p1 = first, p2 = start;
    OneSided(p1, p2);
    Take(open_ & ~MayEvaluate(), p1);
    if (open_ != 0) Bracketed(p1, p2);
    return {result_.alpha, -result_.cost};
  }

 private:
  unsigned MayEvaluate() const { return Bits(evaluations_ < p_.max_evaluations); }
  unsigned Flat(const LinePoint& p) const { return Bits(Abs(p.slope) < p_.slope_tolerance); }

  void Take(unsigned lanes, const LinePoint& p) {
    result_ = Choose(FromBits(lanes & open_), p, result_);
    open_ &= ~lanes;
  }

  // In `lanes` alone, where evaluations are counted.
  LinePoint Evaluate(unsigned lanes, Lane alpha) {
    evaluations_ = Select(FromBits(lanes), evaluations_ + 1.0, evaluations_);
    return EvaluateLine(p_, alpha, lanes);
  }
  LinePoint Newton(unsigned lanes, const LinePoint& p) {
    return Evaluate(lanes, p.alpha - p.slope / p.curvature);
  }

  // Newton's steps, until the slope changes sign.
  void OneSided(LinePoint& p1, LinePoint& p2) {
    const Lane direction = Select(p1.slope < 0.0, Splat(1), Splat(-1));
    unsigned going = open_;
    for (;;) {
      going &= Bits(p1.slope * direction <= -p_.slope_tolerance) & MayEvaluate();
      if (going == 0) return;
      const Mask m = FromBits(going);
      p2 = Choose(m, p1, p2);
      p1 = Choose(m, Newton(going, p1), p1);
      Take(going & Flat(p1) & Bits(p1.cost < 0.0), p1);
      going &= open_;
    }
  }

  // Moves one end of the bracket to the candidate nearest to the minimum on its side. Returns lanes
  // where it moved; in those `next` becomes the Newton point from there.
  unsigned Improve(LinePoint& p, const LinePoint* candidates, LinePoint& next) {
    unsigned moved = 0;
    for (int i = 0; i < 3; ++i) {
      const Lane slope = candidates[i].slope;
      const Mask nearer = ((p.slope < 0.0) & (slope < 0.0) & (p.slope < slope)) |
                          ((p.slope > 0.0) & (slope > 0.0) & (p.slope > slope));
      p = Choose(nearer, candidates[i], p);
      moved |= Bits(nearer);
    }
    moved &= open_;
    if (moved != 0) next = Choose(FromBits(moved), Newton(moved, p), next);
    return moved;
  }

  void TakeBestFlat(const LinePoint* candidates) {
    LinePoint best = candidates[0];
    unsigned found = Flat(best);
    for (int i = 1; i < 3; ++i) {
      const unsigned flat = Flat(candidates[i]);
      const unsigned better = flat & (~found | Bits(candidates[i].cost < best.cost));
      best = Choose(FromBits(better), candidates[i], best);
      found |= flat;
    }
    Take(found, best);
  }

  void Bracketed(LinePoint p1, LinePoint p2) {
    LinePoint p2_next = p1;
    LinePoint p1_next = Newton(open_, p1);
    for (;;) {
      const unsigned exhausted = open_ & ~MayEvaluate();
      if (exhausted != 0) TakeEnd(exhausted, p1, p2);
      if (open_ == 0) return;
      const LinePoint middle = Evaluate(open_, 0.5 * (p1.alpha + p2.alpha));
      const LinePoint candidates[3] = {p1_next, p2_next, middle};
      TakeBestFlat(candidates);
      if (open_ == 0) return;
      const unsigned moved1 = Improve(p1, candidates, p1_next);
      const unsigned moved2 = Improve(p2, candidates, p2_next);
      Take(open_ & ~(moved1 | moved2), middle);
    }
  }

  // No more evaluations: an end of the bracket, or no step at all.
  void TakeEnd(unsigned lanes, const LinePoint& p1, const LinePoint& p2) {
    const LinePoint nothing = {Splat(0), Splat(0), Splat(0), Splat(0)};
    const Mask first = (p1.cost <= p2.cost) & (p1.cost < 0.0);
    const Mask second = (p2.cost <= p1.cost) & (p2.cost < 0.0);
    Take(lanes, Choose(first, p1, Choose(second, p2, nothing)));
  }

  const LineProblem& p_;
  Lane evaluations_;
  unsigned open_;
  LinePoint result_;
};

// Where a residual is between the bounds of dry friction's quadratic cost.
struct Zone {
  Zone(Lane x, Lane bound)
      : inside((-bound < x) & (x < bound)), below(x <= -bound), above(x >= bound) {}

  Lane Cost(Lane x, Lane f, Lane bound, Lane D) const {
    const Lane outside = Select(below, f * (-0.5 * bound - x), f * (-0.5 * bound + x));
    return Select(inside, 0.5 * D * x * x, outside);
  }

  Mask inside, below, above;
};

}  // namespace

FrictionPoint EvaluateFriction(const LineProblem& p, Lane alpha) {
  const Lane zero = Splat(0);
  FrictionPoint sum = {zero, zero, zero};
  for (int k = 0; k < p.num_friction; ++k) {
    const int r = p.num_equality + k;
    const Lane start = p.residual[r], direction = p.direction[r];
    const Lane f = p.loss[k], bound = p.bound[k], D = p.D[r];
    const Lane x = start + alpha * direction;
    const Zone at_start(start, bound), at_x(x, bound);
    const Lane absolute = at_x.Cost(x, f, bound, D) - at_start.Cost(start, f, bound, D);
    Lane difference = Select(at_start.above & at_x.above, f * (x - start), absolute);
    difference = Select(at_start.below & at_x.below, f * (start - x), difference);
    difference =
        Select(at_start.inside & at_x.inside, 0.5 * D * (x - start) * (x + start), difference);
    sum.cost = sum.cost + difference;
    sum.slope = sum.slope + Select(at_x.inside, D * x * direction,
                                   Select(at_x.below, -f * direction, f * direction));
    sum.curvature = sum.curvature + Select(at_x.inside, D * direction * direction, zero);
  }
  return sum;
}

LinePoint EvaluateLine(const LineProblem& p, Lane alpha, unsigned lanes) {
  const Lane zero = Splat(0);
  FrictionPoint other = EvaluateFriction(p, alpha);
  Lane& cost = other.cost;
  Lane total0 = zero, total1 = p.gauss1, total2 = p.gauss2;
  for (int r = 0; r < p.num_equality; ++r) {
    total1 = total1 + p.quad1[r];
    total2 = total2 + p.quad2[r];
  }
  ConeWalk walk(p.cones);
  for (int r = p.num_equality + p.num_friction; r < p.num_rows; ++r) {
    const int cone = walk.At(r);
    Mask active = p.residual[r] + alpha * p.direction[r] < 0.0;
    Lane cost0 = Select(p.residual[r] < 0.0, p.quad0[r], zero);
    if (cone >= 0) {
      const ConeLine& line = p.cone_line[cone];
      AddConePoint(line, alpha, lanes, &cost, &other.slope, &other.curvature);
      active = active & !line.has_cone;
      cost0 = Select(line.has_cone, zero, cost0);
    }
    total0 = total0 + Select(active, p.quad0[r] - cost0, zero);
    total1 = total1 + Select(active, p.quad1[r], zero);
    total2 = total2 + Select(active, p.quad2[r], zero);
    cost = cost - Select(active, zero, cost0);
    if (cone >= 0) r += p.cone_line[cone].num_rows - 1;
  }
  cost = cost + (alpha * alpha * total2 + alpha * total1 + total0);
  const Lane slope = other.slope + (2.0 * alpha * total2 + total1);
  const Lane curvature = other.curvature + 2.0 * total2;
  return {alpha, cost, slope, Select(curvature <= 0.0, Splat(kMinVal), curvature)};
}

LineResult SearchLine(const LineProblem& problem, const LinePoint& start, const LinePoint& first,
                      unsigned open) {
  return LineSearch(problem, first, open).Run(start, first);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
