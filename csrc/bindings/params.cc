#include "bindings/params.h"

#include <map>
#include <string>
#include <vector>

namespace pyfastenv {

namespace py = pybind11;

namespace {

double ToNumber(const std::string& name, py::handle value) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw BadParamType(name + ": expected a number");
  }
  return number;
}

Params::Value ToValue(const std::string& name, py::handle value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  // lists, tuples and arrays; a 0-d array has no length
  if (PySequence_Check(value.ptr()) != 0 && PySequence_Size(value.ptr()) >= 0) {
    std::vector<double> numbers;
    for (const auto item : value) numbers.push_back(ToNumber(name, item));
    return numbers;
  }
  PyErr_Clear();
  if (PyIndex_Check(value.ptr()) != 0) {  // int, or one of NumPy's
    const auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    int overflow = 0;
    const long long number =  // NOLINT(google-runtime-int): Python's API
        integer ? PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow) : -1;
    if (integer && overflow == 0) return static_cast<int64_t>(number);
    PyErr_Clear();  // an array, or too large: as a float
  }
  return ToNumber(name, value);
}

}  // namespace

Params ToParams(const py::dict& kwargs) {
  std::map<std::string, Params::Value> values;
  for (const auto& [key, value] : kwargs) {
    const auto name = key.cast<std::string>();
    values[name] = ToValue(name, value);
  }
  return Params(values);
}

}  // namespace pyfastenv
