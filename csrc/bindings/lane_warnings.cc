#include "bindings/lane_warnings.h"

#include <pybind11/pybind11.h>

#include <string>

#include "mujoco/lane_trust.h"

namespace pyfastenv {

namespace py = pybind11;

void WarnOfBrokenTrust() {
  static int64_t seen = 0;  // with the GIL
  const int64_t count = CountBrokenTrust();
  if (count == seen) return;
  seen = count;
  for (const std::string& difference : TakeBrokenTrust()) {
    const std::string text = difference + "; from now on mj_step steps this model";
    // of Python's frames the nearest is pyfastenv's, the next its caller's
    if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 2) != 0) throw py::error_already_set();
  }
}

}  // namespace pyfastenv
