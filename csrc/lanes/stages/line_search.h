// The exact line search of all lanes at once: MuJoCo's PrimalSearch.
#pragma once

#include "lanes/stages/cones.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// A point on the line: cost less that at 0, and its two derivatives.
struct LinePoint {
  Lane alpha, cost, slope, curvature;
};

/// Along each lane's search direction: rows' residuals, directions and quadratic costs, Gauss's
/// cost.
struct LineProblem {
  int num_rows;
  int num_equality;          // the first rows, which always resist
  int num_friction;          // the next, whose force is at most `loss`
  const Lane *loss, *bound;  // (num_friction): and the residual, times D, that it takes
  const Lane *residual, *direction, *D, *quad0, *quad1, *quad2;  // (num_rows)
  Lane gauss1, gauss2;
  Lane slope_tolerance;
  int max_evaluations;
  const Cones& cones;
  const ConeLine* cone_line;  // (cones.count)
};

/// The cost of dry friction alone, less that at 0, and its derivatives.
struct FrictionPoint {
  Lane cost, slope, curvature;
};
FrictionPoint EvaluateFriction(const LineProblem& problem, Lane alpha);
/// Other lanes than `lanes` may get any point.
LinePoint EvaluateLine(const LineProblem& problem, Lane alpha, unsigned lanes);

struct LineResult {
  Lane alpha;
  Lane improvement;
};

/// For lanes that `first`, one Newton step from the point `start` at 0, has not settled; other
/// lanes get `first`.
LineResult SearchLine(const LineProblem& problem, const LinePoint& start, const LinePoint& first,
                      unsigned open);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
