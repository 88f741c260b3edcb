// Classes _core.DefaultFloats and _core.FlushDenormals: contexts within which this thread computes
// in another mode of floating-point numbers.
#include <pybind11/pybind11.h>

#include <optional>

#include "core/float_mode.h"
#include "learn/denormals.h"

namespace pyfastenv {

namespace {

namespace py = pybind11;

template <class Scope>
class Context {
 public:
  void Enter() { scope_.emplace(); }
  void Exit(const py::object& /*type*/, const py::object& /*error*/,
            const py::object& /*traceback*/) {
    scope_.reset();
  }

 private:
  std::optional<Scope> scope_;
};

template <class Scope>
void Bind(py::module_& m, const char* name, const char* documentation) {
  using Class = Context<Scope>;
  py::class_<Class>(m, name, documentation)
      .def(py::init<>())
      .def("__enter__", &Class::Enter)
      .def("__exit__", &Class::Exit, py::arg("type"), py::arg("error"), py::arg("traceback"));
}

}  // namespace

void BindFloatModes(py::module_& m) {
  Bind<DefaultFloats>(m, "DefaultFloats",
                      "Within it, this thread rounds to nearest and keeps denormal numbers, "
                      "whatever it has been told.");
  Bind<FlushDenormals>(m, "FlushDenormals",
                       "Within it, this thread takes numbers below a float's normal range for "
                       "zero, on x86-64 and ARM.");
}

}  // namespace pyfastenv
