#include "lanes/stages/line_search.h"

#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

class LineSearch {
 public:
  explicit LineSearch(const LineProblem& problem) : p_(problem) {}

  LineResult Run(const LinePoint& start, const LinePoint& first) {
    evaluations_ = 2;
    LinePoint p1 = first, p2 = start;
    const int direction = p1.slope < 0 ? 1 : -1;
    // one-sided, until the slope changes sign
    while (p1.slope * direction <= -p_.slope_tolerance && MayEvaluate()) {
      p2 = p1;
      p1 = Newton(p1);
      if (Flat(p1) && p1.cost < 0) return Take(p1);
    }
    if (!MayEvaluate()) return Take(p1);
    return Bracketed(p1, p2);
  }

 private:
  bool MayEvaluate() const { return evaluations_ < p_.max_evaluations; }
  bool Flat(const LinePoint& p) const { return __builtin_fabs(p.slope) < p_.slope_tolerance; }
  static LineResult Take(const LinePoint& p) { return {p.alpha, -p.cost}; }

  LinePoint Evaluate(double alpha) {
    double cost = 0, total0 = 0, total1 = p_.gauss1, total2 = p_.gauss2;
    for (int i = 0; i < p_.num_rows; ++i) {
      const double start = p_.residual[i];
      const double x = start + alpha * p_.direction[i];
      const double cost0 = start < 0 ? p_.quad0[i] : 0;
      if (x < 0) {
        total0 += p_.quad0[i] - cost0;
        total1 += p_.quad1[i];
        total2 += p_.quad2[i];
      } else {
        cost -= cost0;
      }
    }
    cost += alpha * alpha * total2 + alpha * total1 + total0;
    const double curvature = 2 * total2;
    ++evaluations_;
    return {alpha, cost, 2 * alpha * total2 + total1, curvature <= 0 ? kMinVal : curvature};
  }

  LinePoint Newton(const LinePoint& p) { return Evaluate(p.alpha - p.slope / p.curvature); }

  // Moves one end of the bracket to the candidate nearest to the minimum on its side. Returns
  // whether it moved; then `next` is the Newton point from there.
  bool Improve(LinePoint& p, const LinePoint* candidates, LinePoint& next) {
    bool moved = false;
    for (int i = 0; i < 3; ++i) {
      const double slope = candidates[i].slope;
      if ((p.slope < 0 && slope < 0 && p.slope < slope) ||
          (p.slope > 0 && slope > 0 && p.slope > slope)) {
        p = candidates[i];
        moved = true;
      }
    }
    if (moved) next = Newton(p);
    return moved;
  }

  LineResult Bracketed(LinePoint p1, LinePoint p2) {
    LinePoint p2_next = p1;
    LinePoint p1_next = Newton(p1);
    while (MayEvaluate()) {
      const LinePoint middle = Evaluate(0.5 * (p1.alpha + p2.alpha));
      const LinePoint candidates[3] = {p1_next, p2_next, middle};
      const LinePoint* best = nullptr;
      for (const LinePoint& candidate : candidates) {
        if (Flat(candidate) && (best == nullptr || candidate.cost < best->cost)) best = &candidate;
      }
      if (best != nullptr) return Take(*best);
      const bool moved1 = Improve(p1, candidates, p1_next);
      const bool moved2 = Improve(p2, candidates, p2_next);
      if (!moved1 && !moved2) return Take(middle);
    }
    if (p1.cost <= p2.cost && p1.cost < 0) return Take(p1);
    if (p2.cost <= p1.cost && p2.cost < 0) return Take(p2);
    return {0, 0};
  }

  const LineProblem& p_;
  int evaluations_ = 0;
};

}  // namespace

LineResult SearchLine(const LineProblem& problem, const LinePoint& start, const LinePoint& first) {
  return LineSearch(problem).Run(start, first);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
