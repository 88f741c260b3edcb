// Functions _core.column_moments and _core.linear_scan.
#include "learn/statistics.h"

#include <pybind11/pybind11.h>

#include <string>

#include "bindings/errors.h"
#include "bindings/numpy_interop.h"

namespace pyfastenv {

namespace {

InputArray ReadMatrix(const py::object& object, const char* name) {
  return ReadFloat32(object, name, {kAnySize, kAnySize},
                     [] { return std::string("(rows, columns) float32"); });
}

py::tuple BindColumnMoments(const py::object& samples) {
  const InputArray input = ReadMatrix(samples, "samples");
  const NewArray mean = MakeArray({input.shape[1]}, ArrayType::kFloat64);
  const NewArray m2 = MakeArray({input.shape[1]}, ArrayType::kFloat64);
  ColumnMoments(Floats(input), input.shape[0], input.shape[1], static_cast<double*>(mean.data),
                static_cast<double*>(m2.data));
  return py::make_tuple(mean.array, m2.array);
}

py::object BindLinearScan(const py::object& values, const py::object& decays) {
  const InputArray added = ReadMatrix(values, "values");
  const InputArray factors = ReadMatrix(decays, "decays");
  if (added.shape != factors.shape) {
    throw BadValue("decays: expected the shape of values, ", Describe(added.shape), ", got ",
                   Describe(factors.shape));
  }
  const NewArray x = MakeArray(added.shape, ArrayType::kFloat32);
  LinearScan(Floats(added), Floats(factors), added.shape[0], added.shape[1],
             static_cast<float*>(x.data));
  return x.array;
}

}  // namespace

void BindStatistics(py::module_& m) {
  m.def("column_moments", &BindColumnMoments, py::arg("samples"),
        "Mean and sum of squared deviations of each column, float64.");
  m.def("linear_scan", &BindLinearScan, py::arg("values"), py::arg("decays"),
        "x[t] = values[t] + decays[t] * x[t + 1], from the last row to the first.");
}

}  // namespace pyfastenv
