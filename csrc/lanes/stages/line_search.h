// The exact line search along one lane's search direction, for the few lanes that the first Newton
// step does not settle: MuJoCo's PrimalSearch after its initial convergence check.
#pragma once

#include "lanes/stages/lane.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// A point on the line: cost less that at 0, and its two derivatives.
struct LinePoint {
  double alpha, cost, slope, curvature;
};

/// One lane's problem: rows' residuals, directions and quadratic costs, and Gauss's cost.
struct LineProblem {
  int num_rows;
  const double *residual, *direction, *quad0, *quad1, *quad2;  // (num_rows)
  double gauss1, gauss2;
  double slope_tolerance;
  int max_evaluations;
};

struct LineResult {
  double alpha;
  double improvement;
};

/// `start` is the point at 0, `first` that after one Newton step.
LineResult SearchLine(const LineProblem& problem, const LinePoint& start, const LinePoint& first);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
