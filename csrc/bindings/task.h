// An own task as Python describes it (pyfastenv/tasks).
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "envs/function_env.h"

namespace pyfastenv {

/// From the dict that pyfastenv.tasks.pool.program makes. Throws TypeError for unfit or missing
/// entries.
std::shared_ptr<const TaskDescription> ReadTask(const pybind11::object& task);

}  // namespace pyfastenv
