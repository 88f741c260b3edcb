// Class _core.Policy: a copy of a torch policy's parameters.
#include "nn/policy.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bindings/names.h"
#include "bindings/numpy_interop.h"

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

// A float32 array of this shape with finite numbers.
InputArray ReadFloat32(const py::object& object, const std::string& name,
                       const std::vector<int64_t>& shape) {
  const auto expected = [&] { return Describe(shape) + " float32"; };
  InputArray input = ReadFloats(object, name.c_str(), expected);
  if (input.dtype != DType::kFloat32 || input.shape != shape) {
    throw UsageError(Code::kValue,
                     name + ": expected " + expected() + ", got " + Describe(input.array));
  }
  if (!AllFinite(input, 0, NumElements(shape))) {
    throw UsageError(Code::kValue, name + ": expected finite numbers, got NaN or infinity");
  }
  return input;
}

std::vector<float> ReadVector(const py::object& object, const std::string& name,
                              const std::vector<int64_t>& shape) {
  if (object.is_none()) return {};
  const InputArray input = ReadFloat32(object, name, shape);
  const auto* values = static_cast<const float*>(input.data);
  return {values, values + NumElements(shape)};
}

Mlp ReadMlp(const py::list& weights, const py::list& biases, const std::string& activation) {
  if (weights.empty() || weights.size() != biases.size()) {
    throw UsageError(Code::kValue, "policy: expected as many weights as biases, at least one");
  }
  std::vector<int> sizes;
  int64_t num_networks = 0;
  for (const py::handle weight : weights) {
    const InputArray w = ReadFloats(weight, "weights",
                                    [] { return std::string("(num_policies, in, out) float32"); });
    if (w.shape.size() != 3 || w.shape[0] < 1 || w.shape[1] < 1 || w.shape[2] < 1 ||
        (!sizes.empty() && (w.shape[1] != sizes.back() || w.shape[0] != num_networks))) {
      throw UsageError(Code::kValue, "policy: layer " +
                                         std::to_string(sizes.empty() ? 0 : sizes.size() - 1) +
                                         ": expected weights (num_policies, in, out) that follow "
                                         "the layer before, got " +
                                         Describe(w.shape));
    }
    num_networks = w.shape[0];
    if (sizes.empty()) sizes.push_back(static_cast<int>(w.shape[1]));
    sizes.push_back(static_cast<int>(w.shape[2]));
  }
  Mlp mlp(static_cast<int>(num_networks), sizes, ToActivation(activation));
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string layer = "policy: layer " + std::to_string(i);
    const InputArray w =
        ReadFloat32(weights[i], layer + ": weights", {num_networks, sizes[i], sizes[i + 1]});
    const InputArray b = ReadFloat32(biases[i], layer + ": biases", {num_networks, sizes[i + 1]});
    mlp.SetLayer(static_cast<int>(i), static_cast<const float*>(w.data),
                 static_cast<const float*>(b.data));
  }
  return mlp;
}

void CheckOutputs(const Mlp& mlp, const PolicyOptions& options) {
  if (options.distribution == Distribution::kCategorical) return;
  const auto size = static_cast<int>(options.action_low.size());
  const bool gaussian = options.distribution != Distribution::kDeterministic;
  const int expected = gaussian && options.log_std.empty() ? 2 * size : size;
  if (mlp.output_size() != expected) {
    throw UsageError(Code::kValue, "policy: expected " + std::to_string(expected) +
                                       " network outputs for " + std::to_string(size) +
                                       " action dimensions, got " +
                                       std::to_string(mlp.output_size()));
  }
  if (options.distribution == Distribution::kGaussian) return;
  for (int i = 0; i < size; ++i) {
    const auto index = static_cast<size_t>(i);
    if (!(std::isfinite(options.action_low[index]) && std::isfinite(options.action_high[index]) &&
          options.action_low[index] < options.action_high[index])) {
      throw UsageError(Code::kValue, "policy: tanh needs finite action bounds, low below high");
    }
  }
}

/// A policy as Python describes it; arrays have one network per first index (pyfastenv.PolicySpec).
struct PyPolicyOptions {
  py::list weights, biases;  // of each layer: (num_policies, in, out), (num_policies, out) float32
  std::string activation = "tanh";
  std::string distribution = "gaussian";
  py::object log_std = py::none();                           // (num_policies, action_size) float32
  py::object obs_mean = py::none(), obs_scale = py::none();  // (num_policies, obs_size) float32
  PolicyOptions core;  // the rest; its distribution and arrays are not used
};

std::unique_ptr<Policy> MakePolicy(const PyPolicyOptions& given) {
  Mlp mlp = ReadMlp(given.weights, given.biases, given.activation);
  const int64_t k = mlp.num_networks();
  PolicyOptions options = given.core;
  const auto action_size = static_cast<int64_t>(options.action_low.size());
  options.distribution = ToDistribution(given.distribution);
  options.log_std = ReadVector(given.log_std, "log_std", {k, action_size});
  options.obs_mean = ReadVector(given.obs_mean, "obs_mean", {k, mlp.input_size()});
  options.obs_scale = ReadVector(given.obs_scale, "obs_scale", {k, mlp.input_size()});
  if (options.action_low.size() != options.action_high.size()) {
    throw UsageError(Code::kValue, "policy: action_low and action_high differ in size");
  }
  if (options.obs_mean.empty() != options.obs_scale.empty()) {
    throw UsageError(Code::kValue, "policy: obs_mean and obs_scale go together");
  }
  if (!(options.noise >= 0.0F) || !(options.obs_clip >= 0.0F)) {
    throw UsageError(Code::kValue, "policy: expected noise and obs_clip >= 0");
  }
  if (!(options.log_std_min <= options.log_std_max)) {
    throw UsageError(Code::kValue, "policy: log_std_range: expected a lower and an upper bound");
  }
  CheckOutputs(mlp, options);
  return std::make_unique<Policy>(std::move(mlp), std::move(options));
}

}  // namespace

void BindPolicy(py::module_& m) {
  using Options = PyPolicyOptions;
  py::class_<Options> options(m, "PolicyOptions", "A policy's description; see PolicySpec.");
  options.def(py::init<>())
      .def_readwrite("weights", &Options::weights)
      .def_readwrite("biases", &Options::biases)
      .def_readwrite("activation", &Options::activation)
      .def_readwrite("distribution", &Options::distribution)
      .def_readwrite("log_std", &Options::log_std)
      .def_readwrite("obs_mean", &Options::obs_mean)
      .def_readwrite("obs_scale", &Options::obs_scale);
  const auto field = [&options](const char* name, auto member) {
    using Value = std::decay_t<decltype(std::declval<PolicyOptions>().*member)>;
    options.def_property(
        name, [member](const Options& self) { return self.core.*member; },
        [member](Options& self, const Value& value) { self.core.*member = value; });
  };
  field("greedy", &PolicyOptions::greedy);
  field("action_low", &PolicyOptions::action_low);
  field("action_high", &PolicyOptions::action_high);
  field("clip_actions", &PolicyOptions::clip_actions);
  field("log_std_min", &PolicyOptions::log_std_min);
  field("log_std_max", &PolicyOptions::log_std_max);
  field("noise", &PolicyOptions::noise);
  field("obs_clip", &PolicyOptions::obs_clip);
  py::class_<Policy>(m, "Policy", "A policy's parameters, copied; see pyfastenv.PolicySpec.")
      .def(py::init(&MakePolicy), py::arg("options"))
      .def_property_readonly("num_policies", &Policy::num_policies);
}

}  // namespace pyfastenv
