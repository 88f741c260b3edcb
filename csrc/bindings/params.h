// Keyword arguments as core/params.h.
#pragma once

#include <pybind11/pybind11.h>

#include "core/params.h"

namespace pyfastenv {

/// bool, integer, real number, string, or sequence of real numbers; others throw BadParamType.
Params ToParams(const pybind11::dict& kwargs);

}  // namespace pyfastenv
