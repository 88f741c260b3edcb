// Constraints made and solved by MuJoCo's own functions, of models that lanes have no code for:
// with sparse Jacobians, many dofs, CG … They see lanes' fields and contacts of one environment at
// a time, so their results are mj_step's.
//
// One per LaneStepper; not thread-safe. Keeps the model.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <span>
#include <vector>

#include "lanes/fields.h"
#include "lanes/tables.h"
#include "mujoco/owned.h"

namespace pyfastenv::lanes {

class LaneStepper;

class ConstraintSolver {
 public:
  /// `lanes` is asked for fields and contacts, and stays. Throws MujocoError.
  ConstraintSolver(std::shared_ptr<const mjModel> model, const LaneStepper& lanes);

  /// The function that the stages call. Until this object is gone.
  ConstraintCall call();

 private:
  static bool Solve(void* self, int lane, SolvedConstraints* solved);
  /// From a lane into the data.
  void Read(std::span<const Field> fields, int lane);
  void ReadForRows(int lane);
  /// False after an engine error in `call` or a warning; then the data is as new.
  template <class F>
  bool Run(const F& call);
  void ListRows();

  std::shared_ptr<const mjModel> model_;
  mjModel header_;  // with the numbers of the lane that is asked about
  const LaneStepper& lanes_;
  DataPointer data_;
  std::vector<SolvedRow> rows_;
};

}  // namespace pyfastenv::lanes
