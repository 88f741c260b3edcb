// A vector environment's arguments from Python, checked: ids, masks, seeds, actions.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "bindings/numpy_interop.h"
#include "core/buffers.h"
#include "core/env_spec.h"
#include "core/errors.h"

namespace pyfastenv {

/// None: all. Throws UsageError for others than a vector of known ids.
std::vector<int32_t> ReadIds(const py::object& env_ids, int num_envs);

/// The ids whose entry of a (num_envs) bool array is true.
std::vector<int32_t> ReadMask(const py::object& mask, int num_envs);

/// Entropy of these environments' streams. `seeds`: None, or an int or None per environment.
std::vector<std::vector<uint32_t>> ReadSeeds(const py::object& seeds,
                                             const std::vector<int32_t>& ids);

/// (count) integers of a Discrete space, or (count, action_size) finite numbers. `ids` name the
/// environments in messages; null: 0, 1, ….
InputArray ReadActions(py::handle actions, const EnvSpec& spec, int count,
                       const std::vector<int32_t>* ids);
ActionViews ActionsOf(const InputArray& input, const EnvSpec& spec);

/// Throws UsageError that names the rows' environments; `ids` as in ReadActions.
void CheckFinite(const InputArray& input, const char* name, const std::vector<int32_t>* ids);

}  // namespace pyfastenv
