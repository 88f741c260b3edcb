// Class _core.SacUpdate: soft actor-critic's gradient steps, in place on the caller's vectors.
#include "learn/sac_update.h"

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

class PySacUpdate {
 public:
  PySacUpdate(int obs_size, int action_size, const std::vector<int>& hidden_sizes, int num_seeds,
              int batch_size, int num_threads) {
    if (!SacUpdate::Available()) {
      throw UsageError(Code::kValue, "SacUpdate: this machine has neither AMX nor AVX512-BF16");
    }
    options_ = {obs_size, action_size, hidden_sizes, num_seeds, batch_size, num_threads};
    CheckSize("obs_size", obs_size);
    CheckSize("action_size", action_size);
    CheckSize("num_seeds", num_seeds);
    CheckSize("batch_size", batch_size);
    for (const int size : hidden_sizes) CheckSize("hidden_sizes", size);
    if (hidden_sizes.empty()) {
      throw UsageError(Code::kValue, "hidden_sizes: expected at least one layer");
    }
    update_ = std::make_unique<SacUpdate>(options_);
  }

  void Run(const py::object& rows, const py::object& noise, int64_t step, const SacHyper& hyper,
           const std::vector<py::object>& policy, const std::vector<py::object>& critic,
           const py::object& target, const py::object& log_temperature, const py::object& metrics) {
    const int64_t width = 2 * options_.obs_size + options_.action_size + 2;
    const InputArray row_array =
        Read(rows, "rows", {options_.num_seeds, options_.batch_size, width});
    const InputArray noise_array =
        Read(noise, "noise", {options_.num_seeds, 2 * options_.batch_size, options_.action_size});
    if (noise_array.shape[0] != row_array.shape[0]) {
      throw UsageError(Code::kValue, "noise: expected as many steps as rows has");
    }
    CheckStep(step);
    if (policy.size() != 3 || critic.size() != 3) {
      throw UsageError(Code::kValue, "policy, critic: expected parameters, mean and square");
    }
    const auto vector = [](const py::object& array, const char* name, size_t size) {
      return static_cast<float*>(
          OutputData(array, name, {static_cast<int64_t>(size)}, ArrayType::kFloat32));
    };
    const size_t policy_size = update_->policy_size(hyper.learn_temperature);
    const size_t critic_size = update_->critic_size();
    SacVectors vectors;
    vectors.policy.parameters = vector(policy[0], "policy", policy_size);
    vectors.policy.mean = vector(policy[1], "policy", policy_size);
    vectors.policy.square = vector(policy[2], "policy", policy_size);
    vectors.critic.parameters = vector(critic[0], "critic", critic_size);
    vectors.critic.mean = vector(critic[1], "critic", critic_size);
    vectors.critic.square = vector(critic[2], "critic", critic_size);
    vectors.target = vector(target, "target", critic_size);
    const auto num_seeds = static_cast<size_t>(options_.num_seeds);
    vectors.log_temperature = vector(log_temperature, "log_temperature", num_seeds);
    auto* metric_data = static_cast<float*>(OutputData(
        metrics, "metrics", {SacUpdate::kNumMetrics, options_.num_seeds}, ArrayType::kFloat32));
    WithoutGil([&] {
      const std::lock_guard lock(mutex_);
      update_->Run(static_cast<const float*>(row_array.data),
                   static_cast<const float*>(noise_array.data),
                   static_cast<int>(row_array.shape[0]), step, hyper, vectors, metric_data);
    });
  }

 private:
  static InputArray Read(const py::object& object, const char* name,
                         const std::vector<int64_t>& shape) {
    const auto expected = [&] { return "(steps, " + Describe(shape).substr(1) + " float32"; };
    InputArray array = ReadFloats(object, name, expected);
    const bool fits =
        array.shape.size() == 4 && std::equal(shape.begin(), shape.end(), array.shape.begin() + 1);
    if (!fits || array.dtype != DType::kFloat32) {
      throw UsageError(Code::kValue, std::string(name) + ": expected " + expected() + ", got " +
                                         Describe(array.array));
    }
    return array;
  }

  SacOptions options_;
  std::unique_ptr<SacUpdate> update_;
  std::mutex mutex_;
};

}  // namespace

void BindSacUpdate(py::module_& m) {
  py::class_<SacHyper>(m, "SacHyper", "Settings of SAC's gradient steps.")
      .def(py::init<>())
      .def_readwrite("policy_lr", &SacHyper::policy_lr)
      .def_readwrite("critic_lr", &SacHyper::critic_lr)
      .def_readwrite("beta1", &SacHyper::beta1)
      .def_readwrite("beta2", &SacHyper::beta2)
      .def_readwrite("eps", &SacHyper::eps)
      .def_readwrite("gamma", &SacHyper::gamma)
      .def_readwrite("tau", &SacHyper::tau)
      .def_readwrite("log_std_min", &SacHyper::log_std_min)
      .def_readwrite("log_std_max", &SacHyper::log_std_max)
      .def_readwrite("target_entropy", &SacHyper::target_entropy)
      .def_readwrite("learn_temperature", &SacHyper::learn_temperature);
  py::class_<PySacUpdate>(m, "SacUpdate", "SAC's steps on the CPU; see pyfastenv.algorithms.sac.")
      .def(py::init<int, int, const std::vector<int>&, int, int, int>(), py::kw_only(),
           py::arg("obs_size"), py::arg("action_size"), py::arg("hidden_sizes"),
           py::arg("num_seeds"), py::arg("batch_size"), py::arg("num_threads"))
      .def_static("available", &SacUpdate::Available,
                  "Whether this machine multiplies bfloat16 numbers.")
      .def_static("unit", &SacUpdate::Unit, "By what: AMX, AVX512-BF16, or nothing.")
      .def("run", &PySacUpdate::Run, py::arg("rows"), py::arg("noise"), py::arg("step"),
           py::arg("hyper"), py::arg("policy"), py::arg("critic"), py::arg("target"),
           py::arg("log_temperature"), py::arg("metrics"));
}

}  // namespace pyfastenv
