// VectorEnv.rollout: checks the caller's arrays, releases the GIL, hands back the ended episodes.
#pragma once

#include <pybind11/pybind11.h>

#include "core/vector_env.h"
#include "nn/policy.h"

namespace pyfastenv {

/// `explain`: see ThrowEnvError. `out` names the arrays of RolloutViews; obs and last_obs are
/// float32 or float64 alike, rewards either. `policy_ids` is None or (num_envs) integers. Returns a
/// dict of arrays, one row per ended episode: steps, env_ids, returns, lengths, terminated,
/// final_obs; and "infos", a dict of such arrays of the last steps' infos that are numbers.
pybind11::dict RunRollout(VectorEnv& env, const Policy& policy, const pybind11::object& policy_ids,
                          int num_steps, const pybind11::dict& out,
                          const pybind11::object& explain);

/// The results of a rollout's policy for observations (num_envs, policy's size): (actions as drawn,
/// log-probabilities, actions for the environments).
pybind11::tuple RunPolicy(VectorEnv& env, const Policy& policy, const pybind11::object& policy_ids,
                          const pybind11::object& obs);

}  // namespace pyfastenv
