// In place of plan.cc and features.cc where MuJoCo is older than what lanes know: no plan for any
// model.
#include "lanes/plan.h"
#include "mujoco/version.h"

static_assert(PYFASTENV_MUJOCO < 3011000, "lanes know this MuJoCo");

namespace pyfastenv::lanes {

PlanResult Plan::MakeUnchecked(const mjModel& /*model*/, const Kernels& /*kernels*/,
                               const std::vector<std::string>& /*fields*/,
                               const mjModel* /*whole*/) {
  return {nullptr, "a MuJoCo before 3.11"};
}

PlanResult Plan::Make(const mjModel& model, const Kernels& kernels,
                      const std::vector<std::string>& fields, const mjModel* whole) {
  return MakeUnchecked(model, kernels, fields, whole);
}

}  // namespace pyfastenv::lanes
