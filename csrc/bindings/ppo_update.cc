// Class _core.PpoUpdate: PPO's minibatches on the CPU, in place on the caller's vectors.
#include "learn/ppo_update.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/gil.h"
#include "bindings/keywords.h"
#include "bindings/names.h"
#include "bindings/numpy_interop.h"

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

class PyPpoUpdate {
 public:
  explicit PyPpoUpdate(const py::KWArgs<py::object>& given) {
    Keywords keywords("PpoUpdate", given);
    PpoOptions options;
    std::string activation;
    keywords.Read("obs_size", options.obs_size);
    keywords.Read("policy_sizes", options.policy_sizes);
    keywords.Read("value_sizes", options.value_sizes);
    keywords.Read("policy_begin", options.policy_begin);
    keywords.Read("value_begin", options.value_begin);
    keywords.Read("activation", activation);
    keywords.Read("discrete", options.discrete);
    keywords.Read("layer_norm", options.layer_norm);
    keywords.Read("bfloat16", options.bfloat16);
    keywords.Read("num_threads", options.num_threads);
    keywords.CheckAllRead();
    CheckSize("obs_size", options.obs_size);
    CheckSizes("policy", options.policy_sizes, options.policy_begin, options.obs_size);
    CheckSizes("value", options.value_sizes, options.value_begin, options.obs_size);
    if (options.value_sizes.back() != 1) {
      throw BadValue("value_sizes: expected 1 output, got ", options.value_sizes.back());
    }
    if (options.bfloat16) CheckBf16("bfloat16");
    options.activation = ToActivation(activation);
    num_actions_ = options.discrete ? options.policy_sizes.back() : 0;
    obs_size_ = options.obs_size;
    update_ = std::make_unique<PpoUpdate>(options);
  }

  py::list RunEpochs(const py::object& samples, const py::object& orders, PpoHyper& hyper,
                     int64_t step, const py::object& parameters, const py::object& mean,
                     const py::object& square) {
    const InputArray rows = ReadSamples(samples);
    const auto expected = [] { return std::string("(epochs, n) integers"); };
    const InputArray indices = ReadIntegers(orders, "orders", expected);
    if (indices.shape.size() != 2) {
      throw BadValue("orders: expected ", expected(), ", got ", Describe(indices.array));
    }
    const auto* row_numbers = static_cast<const int64_t*>(indices.data);
    const int64_t num_epochs = indices.shape[0];
    const int64_t n = indices.shape[1];
    for (int64_t i = 0; i < num_epochs * n; ++i) {
      if (row_numbers[i] < 0 || row_numbers[i] >= rows.shape[0]) {
        throw UsageError(Code::kIndex, "orders: expected rows of samples");
      }
    }
    if (hyper.minibatch_size < 1 || hyper.minibatch_size > n) {
      throw BadValue("minibatch_size: expected 1 to ", n, ", got ", hyper.minibatch_size);
    }
    CheckStep(step);
    CheckActions(rows);
    float* flat = Vector(parameters, "parameters");
    float* first = Vector(mean, "mean");
    float* second = Vector(square, "square");
    const std::vector<PpoMetrics> all = WithoutGil(mutex_, [&] {
      return update_->RunEpochs(Floats(rows), row_numbers, static_cast<int>(num_epochs), n, hyper,
                                step, flat, first, second);
    });
    py::list result;
    for (const PpoMetrics& metrics : all) {
      py::dict epoch = ToDict(metrics.means);
      epoch["train/grad_norm"] = metrics.grad_norm;
      result.append(epoch);
    }
    return result;
  }

  py::dict Gradient(const py::object& samples, const PpoHyper& hyper, const py::object& parameters,
                    const py::object& gradient) {
    const InputArray rows = ReadSamples(samples);
    if (rows.shape[0] < 1 || rows.shape[0] > std::numeric_limits<int>::max()) {
      throw BadValue("samples: expected at least one row, got ", Describe(rows.array));
    }
    CheckActions(rows);
    const InputArray flat = ReadParameters(parameters);
    float* written = Vector(gradient, "gradient");
    const PpoSums means = WithoutGil(mutex_, [&] {
      return update_->Gradient(Floats(rows), rows.shape[0], hyper, Floats(flat), written);
    });
    return ToDict(means);
  }

  py::object Values(const py::object& obs, const py::object& parameters) {
    const InputArray rows = ReadFloat32(obs, "obs", {kAnySize, obs_size_});
    const InputArray flat = ReadParameters(parameters);
    const NewArray values = MakeArray({rows.shape[0]}, ArrayType::kFloat32);
    WithoutGil(mutex_, [&] {
      update_->Values(Floats(rows), rows.shape[0], Floats(flat), static_cast<float*>(values.data));
    });
    return values.array;
  }

 private:
  std::vector<int64_t> VectorShape() const {
    return {static_cast<int64_t>(update_->num_parameters())};
  }

  InputArray ReadParameters(const py::object& parameters) const {
    return ReadFloat32(parameters, "parameters", VectorShape());
  }

  float* Vector(const py::object& array, const char* name) const {
    return OutputFloats(array, name, VectorShape());
  }

  InputArray ReadSamples(const py::object& samples) const {
    return ReadFloat32(samples, "samples", {kAnySize, update_->num_columns()});
  }

  static py::dict ToDict(const PpoSums& means) {
    py::dict result;
    result["loss/policy"] = means.policy_loss;
    result["loss/value"] = means.value_loss;
    result["policy/entropy"] = means.entropy;
    result["policy/kl"] = means.kl;
    result["policy/clip_fraction"] = means.clipped;
    return result;
  }

  static void CheckSizes(const std::string& network, const std::vector<int>& sizes, int begin,
                         int obs_size) {
    const std::string name = network + "_sizes";
    if (sizes.size() < 2) throw BadValue(name, ": expected at least two sizes, got ", sizes.size());
    for (const int size : sizes) CheckSize(name.c_str(), size);
    if (begin < 0 || begin > obs_size - sizes.front()) {
      throw BadValue(name, ": expected inputs within an observation of ", obs_size, ", got ",
                     sizes.front(), " from ", begin, " on");
    }
  }

  // a discrete action is used as an index
  void CheckActions(const InputArray& rows) const {
    if (num_actions_ == 0) return;
    const auto* action = Floats(rows) + obs_size_;
    for (int64_t i = 0; i < rows.shape[0]; ++i, action += rows.shape[1]) {
      if (!(*action >= 0.0F && *action < static_cast<float>(num_actions_))) {
        throw BadValue("samples: row ", i, ": expected an action from 0 to ", num_actions_ - 1,
                       ", got ", *action);
      }
    }
  }

  int num_actions_ = 0;  // 0: not discrete
  int obs_size_ = 0;
  std::unique_ptr<PpoUpdate> update_;
  std::mutex mutex_;
};

}  // namespace

void BindPpoUpdate(py::module_& m) {
  py::class_<PpoHyper>(m, "PpoHyper", "What may change from epoch to epoch.")
      .def(py::init<>())
      .def_readwrite("minibatch_size", &PpoHyper::minibatch_size)
      .def_readwrite("lr", &PpoHyper::lr)
      .def_readwrite("beta1", &PpoHyper::beta1)
      .def_readwrite("beta2", &PpoHyper::beta2)
      .def_readwrite("eps", &PpoHyper::eps)
      .def_readwrite("clip", &PpoHyper::clip)
      .def_readwrite("value_clip", &PpoHyper::value_clip)
      .def_readwrite("entropy_coef", &PpoHyper::entropy_coef)
      .def_readwrite("value_coef", &PpoHyper::value_coef)
      .def_readwrite("max_grad_norm", &PpoHyper::max_grad_norm)
      .def_readwrite("normalize_advantages", &PpoHyper::normalize_advantages)
      .def_readwrite("mirrored", &PpoHyper::mirrored)
      .def_readwrite("desired_kl", &PpoHyper::desired_kl)
      .def_readwrite("min_lr", &PpoHyper::min_lr)
      .def_readwrite("max_lr", &PpoHyper::max_lr)
      .def_readwrite("min_log_std", &PpoHyper::min_log_std);
  py::class_<PyPpoUpdate>(m, "PpoUpdate", "PPO's update on the CPU; see pyfastenv.algorithms.ppo.")
      .def(py::init<const py::KWArgs<py::object>&>())
      .def("run_epochs", &PyPpoUpdate::RunEpochs, py::arg("samples"), py::arg("orders"),
           py::arg("hyper"), py::arg("step"), py::arg("parameters"), py::arg("mean"),
           py::arg("square"))
      .def("gradient", &PyPpoUpdate::Gradient, py::arg("samples"), py::arg("hyper"),
           py::arg("parameters"), py::arg("gradient"),
           "Writes the gradient of the loss of all samples, whose advantages count as they are; "
           "returns the metrics.")
      .def("values", &PyPpoUpdate::Values, py::arg("obs"), py::arg("parameters"),
           "The value network's outputs, (n,) float32.");
}

}  // namespace pyfastenv
