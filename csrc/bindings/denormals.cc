// Class _core.FlushDenormals: a context within which this thread takes denormal numbers for zero.
#include "learn/denormals.h"

#include <pybind11/pybind11.h>

#include <optional>

namespace pyfastenv {

namespace {

namespace py = pybind11;

class PyFlushDenormals {
 public:
  void Enter() { flush_.emplace(); }
  void Exit(const py::object& /*type*/, const py::object& /*error*/,
            const py::object& /*traceback*/) {
    flush_.reset();
  }

 private:
  std::optional<FlushDenormals> flush_;
};

}  // namespace

void BindDenormals(py::module_& m) {
  py::class_<PyFlushDenormals>(m, "FlushDenormals",
                               "Within it, this thread takes numbers below a float's normal range "
                               "for zero, on x86-64 and ARM.")
      .def(py::init<>())
      .def("__enter__", &PyFlushDenormals::Enter)
      .def("__exit__", &PyFlushDenormals::Exit, py::arg("type"), py::arg("error"),
           py::arg("traceback"));
}

}  // namespace pyfastenv
