// The core's errors as Python exceptions (pyfastenv/errors.py and builtins).
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "core/errors.h"

namespace pyfastenv {

void RegisterErrors();

/// Raises pyfastenv.errors.EnvError; `results` is what the other environments returned, or None.
/// `explain(env_id, message, function, exception, action, repeatable)` words the failures of
/// compiled functions anew; None leaves them.
[[noreturn]] void ThrowEnvError(const std::vector<EnvFailure>& failures,
                                const pybind11::object& results, const pybind11::object& explain);

}  // namespace pyfastenv
