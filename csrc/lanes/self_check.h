// Whether lanes and mj_step agree on this machine, tried out.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <span>
#include <string>

namespace pyfastenv::lanes {

class Plan;

/// Steps some hundred states of short random trajectories (StartStates) by mj_step and by all of
/// these plans, which are of the same model and fields, the widest last. Returns what differed
/// first (Describe), or nothing.
///
/// How many states is counted by the work that they are, never by a clock: what is found is found
/// every time. 10 to 30 ms, in which small models have more trajectories.
std::string SelfCheck(const mjModel& model, std::span<const std::shared_ptr<const Plan>> plans);

}  // namespace pyfastenv::lanes
