// Whether lanes and mj_step agree on this machine, tried out.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <string>

namespace pyfastenv::lanes {

class Plan;

/// Steps some hundred states of short random trajectories both ways. Returns what differed first,
/// or nothing. A few milliseconds.
std::string SelfCheck(const mjModel& model, const std::shared_ptr<const Plan>& plan);

}  // namespace pyfastenv::lanes
