// Elliptic friction cones: their costs, forces and Hessians in the Newton solver.
//
// A cone has a row along the contact's normal and one for each direction of friction. In each lane
// it is slack, stuck (all rows resist as springs do: the state that rows call active), or sliding:
// then rows resist together, by ½ Dm (N - mu T)² of the normal part N and the length T of the rest.
#pragma once

#include "lanes/stages/jacobian.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// Goes through rows in their order, cone by cone and row by row: of cones the first rows are seen.
class ConeWalk {
 public:
  explicit ConeWalk(const Cones& cones) : cones_(cones) {}
  /// The index of the cone whose first row this is; -1 if it is none's. Rows come in their order.
  int At(int row) { return next_ < cones_.count && cones_.first_row[next_] == row ? next_++ : -1; }

 private:
  const Cones& cones_;
  int next_ = 0;
};

/// Lanes whose contact is a cone; others have one row without friction there, or none.
inline unsigned LanesWithCone(const Rows& rows, int cone) {
  return rows.valid[rows.cones.first_row[cone] + 1];
}

/// Σ ½ D r² where the cone sticks, ½ Dm (N - mu T)² where it slides, added to `cost` in the lanes
/// that have the cone.
Lane AddConeCost(const Rows& rows, int cone, const Lane* residual, Lane cost);

/// Sets rows' forces and active lanes; returns lanes in which the cone slides.
unsigned UpdateCone(Rows& rows, int cone, const Lane* residual);

/// Along each lane's search direction: U and V are residuals and directions times mu and friction.
struct ConeLine {
  int num_rows;
  Mask has_cone;
  Lane mu, Dm;
  Lane U[6], V[6];
  Lane T;                    // of U
  Lane quad0, quad1, quad2;  // where it sticks
};
ConeLine PrepareConeLine(const Rows& rows, int cone, const Lane* residual, const Lane* direction);
/// Adds cost less that at 0 and its derivatives, in those of `lanes` that have the cone.
void AddConePoint(const ConeLine& cone, Lane alpha, unsigned lanes, Lane* cost, Lane* slope,
                  Lane* curvature);

/// Rows x (num_rows, n) whose products x xᵀ, summed, are the Hessian of a cone where it slides.
void ConeUpdate(const Rows& rows, int cone, const Lane* residual, const Jacobian& jacobian,
                Lane* x);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
