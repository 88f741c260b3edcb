// Class _core.Policy: a copy of a torch policy's parameters.
#include "nn/policy.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bindings/keywords.h"
#include "bindings/names.h"
#include "bindings/numpy_interop.h"

namespace pyfastenv {

namespace {

// A float32 array of this shape with finite numbers.
InputArray ReadFinite(const py::object& object, const std::string& name,
                      const std::vector<int64_t>& shape) {
  InputArray input = ReadFloat32(object, name.c_str(), shape);
  if (!AllFinite(input, 0, NumElements(shape))) {
    throw BadValue(name, ": expected finite numbers, got NaN or infinity");
  }
  return input;
}

std::vector<float> ReadVector(const py::object& object, const std::string& name,
                              const std::vector<int64_t>& shape) {
  if (object.is_none()) return {};
  const InputArray input = ReadFinite(object, name, shape);
  return {Floats(input), Floats(input) + NumElements(shape)};
}

Mlp ReadMlp(const py::list& weights, const py::list& biases, const py::list& layer_norms,
            const std::string& activation) {
  if (weights.empty() || weights.size() != biases.size()) {
    throw BadValue("policy: expected as many weights as biases, at least one");
  }
  std::vector<int> sizes;
  int64_t num_networks = 0;
  for (const py::handle weight : weights) {
    const InputArray w = ReadFloats(weight, "weights",
                                    [] { return std::string("(num_policies, in, out) float32"); });
    if (w.shape.size() != 3 || w.shape[0] < 1 || w.shape[1] < 1 || w.shape[2] < 1 ||
        (!sizes.empty() && (w.shape[1] != sizes.back() || w.shape[0] != num_networks))) {
      throw BadValue("policy: layer ", sizes.empty() ? 0 : sizes.size() - 1,
                     ": expected weights (num_policies, in, out) that follow "
                     "the layer before, got ",
                     Describe(w.shape));
    }
    num_networks = w.shape[0];
    if (sizes.empty()) sizes.push_back(static_cast<int>(w.shape[1]));
    sizes.push_back(static_cast<int>(w.shape[2]));
  }
  if (!layer_norms.empty() && layer_norms.size() + 1 != weights.size()) {
    throw BadValue("policy: layer_norms: expected one of each hidden layer, ", weights.size() - 1,
                   ", or none, got ", layer_norms.size());
  }
  Mlp mlp(static_cast<int>(num_networks), sizes, ToActivation(activation), !layer_norms.empty());
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string layer = "policy: layer " + std::to_string(i);
    const InputArray w =
        ReadFinite(weights[i], layer + ": weights", {num_networks, sizes[i], sizes[i + 1]});
    const InputArray b = ReadFinite(biases[i], layer + ": biases", {num_networks, sizes[i + 1]});
    mlp.SetLayer(static_cast<int>(i), Floats(w), Floats(b));
    if (i >= layer_norms.size()) continue;
    const InputArray norm =
        ReadFinite(layer_norms[i], layer + ": layer_norms", {num_networks, 2, sizes[i + 1]});
    mlp.SetNorm(static_cast<int>(i), Floats(norm));
  }
  return mlp;
}

void CheckOutputs(const Mlp& mlp, const PolicyOptions& options) {
  if (options.distribution == Distribution::kCategorical) return;
  const auto size = static_cast<int>(options.action_low.size());
  const bool gaussian = options.distribution != Distribution::kDeterministic;
  const int expected = gaussian && options.log_std.empty() ? 2 * size : size;
  if (mlp.output_size() != expected) {
    throw BadValue("policy: expected ", expected, " network outputs for ", size,
                   " action dimensions, got ", mlp.output_size());
  }
  if (options.distribution == Distribution::kGaussian) return;
  for (int i = 0; i < size; ++i) {
    const auto index = static_cast<size_t>(i);
    if (!(std::isfinite(options.action_low[index]) && std::isfinite(options.action_high[index]) &&
          options.action_low[index] < options.action_high[index])) {
      throw BadValue("policy: tanh needs finite action bounds, low below high");
    }
  }
}

std::unique_ptr<Policy> MakePolicy(const py::KWArgs<py::object>& given) {
  Keywords keywords("Policy", given);
  py::list weights;
  py::list biases;
  py::list layer_norms;
  std::string activation;
  keywords.Read("weights", weights);
  keywords.Read("biases", biases);
  keywords.Read("layer_norms", layer_norms);
  keywords.Read("activation", activation);
  Mlp mlp = ReadMlp(weights, biases, layer_norms, activation);

  PolicyOptions options;
  std::string distribution;
  py::object log_std;
  py::object obs_mean;
  py::object obs_scale;
  keywords.Read("distribution", distribution);
  keywords.Read("greedy", options.greedy);
  keywords.Read("action_low", options.action_low);
  keywords.Read("action_high", options.action_high);
  keywords.Read("clip_actions", options.clip_actions);
  keywords.Read("log_std", log_std);
  keywords.Read("log_std_min", options.log_std_min);
  keywords.Read("log_std_max", options.log_std_max);
  keywords.Read("noise", options.noise);
  keywords.Read("epsilon", options.epsilon);
  keywords.Read("obs_mean", obs_mean);
  keywords.Read("obs_scale", obs_scale);
  keywords.Read("obs_clip", options.obs_clip);
  keywords.Read("row_begin", options.row_begin);
  keywords.Read("row_size", options.row_size);
  keywords.CheckAllRead();
  const int64_t k = mlp.num_networks();
  options.distribution = ToDistribution(distribution);
  options.log_std =
      ReadVector(log_std, "log_std", {k, static_cast<int64_t>(options.action_low.size())});
  options.obs_mean = ReadVector(obs_mean, "obs_mean", {k, mlp.input_size()});
  options.obs_scale = ReadVector(obs_scale, "obs_scale", {k, mlp.input_size()});
  if (options.action_low.size() != options.action_high.size()) {
    throw BadValue("policy: action_low and action_high differ in size");
  }
  if (options.obs_mean.empty() != options.obs_scale.empty()) {
    throw BadValue("policy: obs_mean and obs_scale go together");
  }
  if (!(options.noise >= 0.0F) || !(options.obs_clip >= 0.0F)) {
    throw BadValue("policy: expected noise and obs_clip >= 0");
  }
  if (!(options.epsilon <= 1.0F)) throw BadValue("policy: expected epsilon <= 1");
  if (!(options.log_std_min <= options.log_std_max)) {
    throw BadValue("policy: log_std_range: expected a lower and an upper bound");
  }
  CheckOutputs(mlp, options);
  const int inputs = mlp.input_size();
  const int row_begin = options.row_begin;
  auto policy = std::make_unique<Policy>(std::move(mlp), std::move(options));
  if (row_begin < 0 || row_begin > int64_t{policy->obs_size()} - inputs) {
    throw BadValue("policy: expected ", inputs, " inputs within an observation of ",
                   policy->obs_size(), ", got those from ", row_begin, " on");
  }
  return policy;
}

}  // namespace

void BindPolicy(py::module_& m) {
  py::class_<Policy>(m, "Policy", "A policy's parameters, copied; see pyfastenv.PolicySpec.")
      .def(py::init(&MakePolicy))
      .def_property_readonly("num_policies", &Policy::num_policies);
}

}  // namespace pyfastenv
