// Class _core.UnitNetworks: residual networks of bounded norms, on the caller's arrays.
#include "learn/unit_networks.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <string>

#include "bindings/gil.h"
#include "bindings/names.h"
#include "bindings/numpy_interop.h"
#include "core/errors.h"

namespace pyfastenv {

namespace {

class PyUnitNetworks {
 public:
  PyUnitNetworks(int num_inputs, int num_outputs, int width, int num_blocks, int num_networks,
                 int max_rows, int num_threads) {
    CheckBf16("UnitNetworks");
    const UnitOptions options{num_inputs,   num_outputs, width,      num_blocks,
                              num_networks, max_rows,    num_threads};
    CheckSize("num_inputs", num_inputs);
    CheckSize("num_outputs", num_outputs);
    CheckSize("width", width);
    CheckSize("num_blocks", num_blocks);
    CheckSize("num_networks", num_networks);
    CheckSize("max_rows", max_rows);
    networks_ = std::make_unique<UnitNetworks>(options);
  }

  int64_t num_parameters() const { return static_cast<int64_t>(networks_->num_parameters()); }
  int64_t num_moments() const { return static_cast<int64_t>(networks_->num_moments()); }

  int64_t Forward(const py::object& inputs, const py::object& parameters, const py::object& moments,
                  bool by_batch, const py::object& outputs) {
    const UnitOptions& options = networks_->options();
    const InputArray input = Rows(inputs, "inputs", options.num_inputs);
    const int64_t rows = input.shape[1];
    if (rows < 1 || rows > options.max_rows) {
      throw BadValue("inputs: expected 1 to ", options.max_rows, " rows, got ", rows);
    }
    const float* parameter_data = Vector(parameters, "parameters", num_parameters());
    float* moment_data = Vector(moments, "moments", num_moments());
    float* output_data =
        OutputFloats(outputs, "outputs", {options.num_networks, rows, options.num_outputs});
    return WithoutGil(mutex_, [&] {
      rows_ = rows;
      networks_->Forward(Floats(input), static_cast<int>(rows), parameter_data, moment_data,
                         by_batch, output_data);
      return ++count_;
    });
  }

  void Backward(int64_t pass, const py::object& by_outputs, const py::object& parameters,
                const py::object& gradients, const py::object& by_inputs) {
    const UnitOptions& options = networks_->options();
    const InputArray output = Rows(by_outputs, "by_outputs", options.num_outputs);
    const int64_t rows = output.shape[1];
    const float* parameter_data = Vector(parameters, "parameters", num_parameters());
    float* gradient_data =
        gradients.is_none() ? nullptr : Vector(gradients, "gradients", num_parameters());
    float* input_data = by_inputs.is_none()
                            ? nullptr
                            : OutputFloats(by_inputs, "by_inputs",
                                           {options.num_networks, rows, options.num_inputs});
    WithoutGil(mutex_, [&] {
      if (pass != count_ || pass == 0) {
        throw BadValue("backward: expected the latest pass, ", count_, ", got ", pass);
      }
      if (rows != rows_) throw BadValue("by_outputs: expected ", rows_, " rows, got ", rows);
      networks_->Backward(Floats(output), parameter_data, gradient_data, input_data);
    });
  }

  void Project(const py::object& parameters) {
    float* parameter_data = Vector(parameters, "parameters", num_parameters());
    WithoutGil(mutex_, [&] { networks_->Project(parameter_data); });
  }

 private:
  InputArray Rows(const py::object& array, const char* name, int size) const {
    return ReadFloat32(array, name, {networks_->options().num_networks, kAnySize, size});
  }

  float* Vector(const py::object& array, const char* name, int64_t size) const {
    return OutputFloats(array, name, {networks_->options().num_networks * size});
  }

  std::unique_ptr<UnitNetworks> networks_;
  std::mutex mutex_;  // of all below; taken without the GIL
  int64_t rows_ = 0;
  int64_t count_ = 0;
};

}  // namespace

void BindUnitNetworks(py::module_& m) {
  py::class_<PyUnitNetworks>(m, "UnitNetworks",
                             "FlashSAC's networks on the CPU; see "
                             "pyfastenv.algorithms.flashsac.accelerated.")
      .def(py::init<int, int, int, int, int, int, int>(), py::kw_only(), py::arg("num_inputs"),
           py::arg("num_outputs"), py::arg("width"), py::arg("num_blocks"), py::arg("num_networks"),
           py::arg("max_rows"), py::arg("num_threads"))
      .def_property_readonly("num_parameters", &PyUnitNetworks::num_parameters, "Of a network.")
      .def_property_readonly("num_moments", &PyUnitNetworks::num_moments, "Of a network.")
      .def("forward", &PyUnitNetworks::Forward, py::arg("inputs"), py::arg("parameters"),
           py::arg("moments"), py::arg("by_batch"), py::arg("outputs"),
           "Writes the outputs; returns the pass's number, for backward().")
      .def("backward", &PyUnitNetworks::Backward, py::arg("number"), py::arg("by_outputs"),
           py::arg("parameters"), py::arg("gradients"), py::arg("by_inputs"),
           "Writes gradients of the latest pass; None: not wanted.")
      .def("project", &PyUnitNetworks::Project, py::arg("parameters"),
           "Brings all norms back to what they are to be.");
}

}  // namespace pyfastenv
