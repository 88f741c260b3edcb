// Class _core.SacUpdate: soft actor-critic's gradient steps, in place on the caller's vectors.
#include "learn/sac_update.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <vector>

#include "bindings/gil.h"
#include "bindings/names.h"
#include "bindings/numpy_interop.h"
#include "core/errors.h"

namespace pyfastenv {

namespace {

class PySacUpdate {
 public:
  PySacUpdate(int obs_size, int action_size, const std::vector<int>& hidden_sizes, bool layer_norm,
              bool bfloat16, int num_seeds, int batch_size, int num_threads) {
    if (bfloat16) CheckBf16("SacUpdate");
    options_ = {obs_size, action_size, hidden_sizes, layer_norm,
                bfloat16, num_seeds,   batch_size,   num_threads};
    CheckSize("obs_size", obs_size);
    CheckSize("action_size", action_size);
    CheckSize("num_seeds", num_seeds);
    CheckSize("batch_size", batch_size);
    CheckHiddenSizes(hidden_sizes);
    update_ = std::make_unique<SacUpdate>(options_);
  }

  void Run(const py::object& rows, const py::object& noise, int64_t step, const SacHyper& hyper,
           const std::vector<py::object>& policy, const std::vector<py::object>& critic,
           const py::object& target, const py::object& log_temperature, const py::object& metrics) {
    const int64_t width = 2 * options_.obs_size + options_.action_size + 2;
    const InputArray row_array =
        ReadFloat32(rows, "rows", {kAnySize, options_.num_seeds, options_.batch_size, width});
    const InputArray noise_array =
        ReadFloat32(noise, "noise",
                    {kAnySize, options_.num_seeds, 2 * options_.batch_size, options_.action_size});
    if (noise_array.shape[0] != row_array.shape[0]) {
      throw BadValue("noise: expected as many steps as rows has");
    }
    CheckStep(step);
    if (policy.size() != 3 || critic.size() != 3) {
      throw BadValue("policy, critic: expected parameters, mean and square");
    }
    const auto vector = [](const py::object& array, const char* name, size_t size) {
      return OutputFloats(array, name, {static_cast<int64_t>(size)});
    };
    const size_t policy_size = update_->policy_size(hyper.learn_temperature);
    const size_t critic_size = update_->critic_size();
    const auto adam = [&](const auto& arrays, const char* name, size_t size) {
      return AdamVectors{.parameters = vector(arrays[0], name, size),
                         .mean = vector(arrays[1], name, size),
                         .square = vector(arrays[2], name, size)};
    };
    const auto num_seeds = static_cast<size_t>(options_.num_seeds);
    const SacVectors vectors{
        .policy = adam(policy, "policy", policy_size),
        .critic = adam(critic, "critic", critic_size),
        .target = vector(target, "target", critic_size),
        .log_temperature = vector(log_temperature, "log_temperature", num_seeds)};
    float* metric_data =
        OutputFloats(metrics, "metrics", {SacUpdate::kNumMetrics, options_.num_seeds});
    WithoutGil(mutex_, [&] {
      update_->Run(Floats(row_array), Floats(noise_array), static_cast<int>(row_array.shape[0]),
                   step, hyper, vectors, metric_data);
    });
  }

 private:
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
      .def(py::init<int, int, const std::vector<int>&, bool, bool, int, int, int>(), py::kw_only(),
           py::arg("obs_size"), py::arg("action_size"), py::arg("hidden_sizes"),
           py::arg("layer_norm"), py::arg("bfloat16"), py::arg("num_seeds"), py::arg("batch_size"),
           py::arg("num_threads"))
      .def("run", &PySacUpdate::Run, py::arg("rows"), py::arg("noise"), py::arg("step"),
           py::arg("hyper"), py::arg("policy"), py::arg("critic"), py::arg("target"),
           py::arg("log_temperature"), py::arg("metrics"));
}

}  // namespace pyfastenv
