// Class _core.EnsembleUpdate: an ensemble's training, in place on the caller's vectors.
#include "learn/ensemble_update.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/gil.h"
#include "bindings/names.h"
#include "bindings/numpy_interop.h"
#include "core/errors.h"

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

class PyEnsembleUpdate {
 public:
  PyEnsembleUpdate(int num_inputs, int num_targets, const std::vector<int>& hidden_sizes,
                   bool bfloat16, int num_networks, int num_seeds, int batch_size,
                   int num_threads) {
    if (bfloat16) CheckBf16("EnsembleUpdate");
    options_ = {num_inputs,   num_targets, hidden_sizes, bfloat16,
                num_networks, num_seeds,   batch_size,   num_threads};
    CheckSize("num_inputs", num_inputs);
    CheckSize("num_targets", num_targets);
    CheckSize("num_networks", num_networks);
    CheckSize("num_seeds", num_seeds);
    CheckSize("batch_size", batch_size);
    CheckHiddenSizes(hidden_sizes);
    if (num_networks % num_seeds != 0) {
      throw BadValue("num_networks: expected as many for each of ", num_seeds, " seeds, got ",
                     num_networks);
    }
    update_ = std::make_unique<EnsembleUpdate>(options_);
  }

  void RunEpoch(const py::object& samples, const py::object& order, int64_t step,
                const EnsembleHyper& hyper, const std::vector<py::object>& vectors) {
    const InputArray sample_array = ReadSamples(samples);
    const int64_t n = sample_array.shape[1];
    const InputArray order_array =
        ReadIntegers(order, "order", [] { return std::string("(networks, count) integers"); });
    if (order_array.shape.size() != 2 || order_array.shape[0] != options_.num_networks) {
      throw BadValue("order: expected (networks, count) integers, got ",
                     Describe(order_array.array));
    }
    const auto* rows = static_cast<const int64_t*>(order_array.data);
    const int64_t count = order_array.shape[1];
    if (std::any_of(rows, rows + order_array.shape[0] * count,
                    [n](int64_t row) { return row < 0 || row >= n; })) {
      throw UsageError(Code::kIndex, "order: expected rows of samples");
    }
    CheckStep(step);
    if (vectors.size() != 3 || hyper.decays.size() != options_.hidden_sizes.size() + 1) {
      throw BadValue(
          "vectors, decays: expected parameters, mean and square, and a decay for "
          "each layer");
    }
    const AdamVectors adam{Vector(vectors[0]), Vector(vectors[1]), Vector(vectors[2])};
    WithoutGil(mutex_,
               [&] { update_->RunEpoch(Floats(sample_array), n, rows, count, step, hyper, adam); });
  }

  void Errors(const py::object& samples, const py::object& parameters, const py::object& errors) {
    const InputArray sample_array = ReadSamples(samples);
    const float* flat = Vector(parameters);
    float* out = OutputFloats(errors, "errors", {options_.num_networks});
    WithoutGil(mutex_,
               [&] { update_->Errors(Floats(sample_array), sample_array.shape[1], flat, out); });
  }

 private:
  InputArray ReadSamples(const py::object& samples) const {
    InputArray array =
        ReadFloat32(samples, "samples",
                    {options_.num_seeds, kAnySize, options_.num_inputs + options_.num_targets});
    if (array.shape[1] < 1) {
      throw BadValue("samples: expected at least one row, got ", Describe(array.array));
    }
    return array;
  }

  float* Vector(const py::object& array) const {
    return OutputFloats(array, "vectors", {static_cast<int64_t>(update_->num_parameters())});
  }

  EnsembleOptions options_;
  std::unique_ptr<EnsembleUpdate> update_;
  std::mutex mutex_;
};

}  // namespace

void BindEnsembleUpdate(py::module_& m) {
  py::class_<EnsembleHyper>(m, "EnsembleHyper", "Settings of an ensemble's training.")
      .def(py::init<>())
      .def_readwrite("lr", &EnsembleHyper::lr)
      .def_readwrite("beta1", &EnsembleHyper::beta1)
      .def_readwrite("beta2", &EnsembleHyper::beta2)
      .def_readwrite("eps", &EnsembleHyper::eps)
      .def_readwrite("bound_coef", &EnsembleHyper::bound_coef)
      .def_readwrite("decays", &EnsembleHyper::decays);
  py::class_<PyEnsembleUpdate>(
      m, "EnsembleUpdate",
      "An ensemble's training on the CPU; see pyfastenv.algorithms.mbpo.dynamics.")
      .def(py::init<int, int, const std::vector<int>&, bool, int, int, int, int>(), py::kw_only(),
           py::arg("num_inputs"), py::arg("num_targets"), py::arg("hidden_sizes"),
           py::arg("bfloat16"), py::arg("num_networks"), py::arg("num_seeds"),
           py::arg("batch_size"), py::arg("num_threads"))
      .def("run_epoch", &PyEnsembleUpdate::RunEpoch, py::arg("samples"), py::arg("order"),
           py::arg("step"), py::arg("hyper"), py::arg("vectors"))
      .def("errors", &PyEnsembleUpdate::Errors, py::arg("samples"), py::arg("parameters"),
           py::arg("errors"));
}

}  // namespace pyfastenv
