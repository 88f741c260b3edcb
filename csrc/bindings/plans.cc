#include "bindings/plans.h"

#include "core/fork.h"

namespace pyfastenv {

physics::PlanCache& Plans() {
  static physics::PlanCache* plans = nullptr;  // never deleted: threads may outlive the module
  static unsigned generation = 0;
  if (plans == nullptr || generation != ForkGeneration()) {
    plans = new physics::PlanCache;
    generation = ForkGeneration();
  }
  return *plans;
}

}  // namespace pyfastenv
