#include "bindings/rollout.h"

#include <cstddef>
#include <string>
#include <vector>

#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/numpy_interop.h"

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

void CheckFits(const VectorEnv& env, int obs_size, const Policy& policy) {
  const EnvSpec& spec = env.spec();
  if (policy.obs_size() != obs_size) {
    throw BadValue("policy: expected a network for observations of size ", obs_size,
                   ", got one for ", policy.obs_size());
  }
  const bool discrete = spec.num_actions > 0;
  if (policy.discrete() != discrete) {
    throw BadValue(discrete ? "policy: expected a categorical one for discrete actions"
                            : "policy: a categorical one does not fit continuous actions");
  }
  const int expected = discrete ? spec.num_actions : spec.action_size();
  const int got = discrete ? policy.num_actions() : policy.action_size();
  if (expected != got) {
    throw BadValue("policy: expected one for ", expected,
                   discrete ? " actions" : " action dimensions", ", got ", got);
  }
}

std::vector<int32_t> ReadPolicyIds(const py::object& object, const VectorEnv& env,
                                   const Policy& policy) {
  if (object.is_none()) return {};
  const auto expected = [&] { return Join("(", env.num_envs(), ",) integers"); };
  const InputArray input = ReadIntegers(object, "policy_id", expected);
  if (input.shape != std::vector<int64_t>{env.num_envs()}) {
    throw BadValue("policy_id: expected ", expected(), ", got shape ", Describe(input.shape));
  }
  const auto* values = static_cast<const int64_t*>(input.data);
  std::vector<int32_t> ids;
  for (int i = 0; i < env.num_envs(); ++i) {
    if (values[i] < 0 || values[i] >= policy.num_policies()) {
      throw UsageError(Code::kIndex, "policy_id: expected 0 to ", policy.num_policies() - 1,
                       ", got ", values[i], " for environment ", i);
    }
    ids.push_back(static_cast<int32_t>(values[i]));
  }
  return ids;
}

// The dtype, float32 or float64, of a caller's array.
DType FloatDType(const py::object& array, const char* name) {
  const InputArray input =
      ReadFloats(array, name, [] { return std::string("a float32 or float64 array"); });
  return input.dtype;
}

// Arrays that are written to are added to `keep`: the dict may lose them meanwhile.
RolloutViews ReadViews(const py::dict& out, const VectorEnv& env, const Policy& policy,
                       int num_steps, std::vector<py::object>& keep) {
  const auto array = [&](const char* name) {
    if (!out.contains(name)) throw BadValue("out: '", name, "' is missing");
    return keep.emplace_back(out[name]);
  };
  struct Written {
    const char* name;
    const char *begin, *end;
  };
  std::vector<Written> written;
  const auto output = [&](const char* name, const std::vector<int64_t>& shape, ArrayType type) {
    const py::object given = array(name);
    void* data = OutputData(given, name, shape, type);
    const auto* begin = static_cast<const char*>(data);
    const char* end = begin + given.attr("nbytes").cast<ptrdiff_t>();
    for (const Written& other : written) {
      if (begin < other.end && other.begin < end) {
        throw BadValue("out: ", other.name, " and ", name, " share memory");
      }
    }
    written.push_back({name, begin, end});
    return data;
  };
  const int64_t steps = num_steps;
  const int64_t envs = env.num_envs();
  const int64_t obs_size = env.spec().obs_size;
  RolloutViews views;
  views.obs_dtype = FloatDType(array("obs"), "obs");
  views.reward_dtype = FloatDType(array("rewards"), "rewards");
  const ArrayType obs_type = ToArrayType(views.obs_dtype);
  views.obs = output("obs", {steps, envs, obs_size}, obs_type);
  views.last_obs = output("last_obs", {envs, obs_size}, obs_type);
  if (policy.discrete()) {
    views.actions = output("actions", {steps, envs}, ArrayType::kInt64);
  } else {
    views.actions = output("actions", {steps, envs, policy.action_size()}, ArrayType::kFloat32);
  }
  views.log_probs = static_cast<float*>(output("log_probs", {steps, envs}, ArrayType::kFloat32));
  views.rewards = output("rewards", {steps, envs}, ToArrayType(views.reward_dtype));
  const auto flags = [&](const char* name) {
    return static_cast<uint8_t*>(output(name, {steps, envs}, ArrayType::kBool));
  };
  views.terminations = flags("terminations");
  views.truncations = flags("truncations");
  views.autoresets = flags("autoresets");
  return views;
}

// The episodes' last infos that are one number each, (E,) float64 by name.
py::dict InfoArrays(const std::vector<EpisodeEnd>& episodes, const EnvSpec& spec) {
  const auto count = static_cast<int64_t>(episodes.size());
  py::dict infos;
  size_t offset = 0;
  for (const InfoField& info : spec.infos) {
    if (info.size == InfoField::kScalar) {
      const NewArray column = MakeArray({count}, ArrayType::kFloat64);
      for (size_t i = 0; i < episodes.size(); ++i) {
        static_cast<double*>(column.data)[i] = episodes[i].info[offset];
      }
      infos[py::str(info.name)] = column.array;
    }
    offset += static_cast<size_t>(info.width());
  }
  return infos;
}

py::dict EpisodeArrays(const std::vector<EpisodeEnd>& episodes, const VectorEnv& env,
                       DType obs_dtype) {
  const auto count = static_cast<int64_t>(episodes.size());
  const int obs_size = env.spec().obs_size;
  const NewArray steps = MakeArray({count}, ArrayType::kInt64);
  const NewArray env_ids = MakeArray({count}, ArrayType::kInt64);
  const NewArray returns = MakeArray({count}, ArrayType::kFloat64);
  const NewArray lengths = MakeArray({count}, ArrayType::kInt64);
  const NewArray terminated = MakeArray({count}, ArrayType::kBool);
  const NewArray final_obs = MakeArray({count, obs_size}, ToArrayType(obs_dtype));
  for (size_t i = 0; i < episodes.size(); ++i) {
    const EpisodeEnd& episode = episodes[i];
    static_cast<int64_t*>(steps.data)[i] = episode.step;
    static_cast<int64_t*>(env_ids.data)[i] = episode.env_id;
    static_cast<double*>(returns.data)[i] = episode.episode_return;
    static_cast<int64_t*>(lengths.data)[i] = episode.length;
    static_cast<uint8_t*>(terminated.data)[i] = episode.terminated ? 1 : 0;
    StoreAs(obs_dtype, episode.final_obs.data(), obs_size,
            static_cast<uint8_t*>(final_obs.data) +
                i * static_cast<size_t>(obs_size) * ItemSize(obs_dtype));
  }
  py::dict result;
  result["steps"] = steps.array;
  result["env_ids"] = env_ids.array;
  result["returns"] = returns.array;
  result["lengths"] = lengths.array;
  result["terminated"] = terminated.array;
  result["final_obs"] = final_obs.array;
  result["infos"] = InfoArrays(episodes, env.spec());
  return result;
}

}  // namespace

py::tuple RunPolicy(VectorEnv& env, const Policy& policy, const py::object& policy_ids,
                    const py::object& obs) {
  const InputArray input = ReadNumbers(obs, "obs");
  const int64_t envs = env.num_envs();
  if (input.shape.size() != 2 || input.shape[0] != envs) {
    throw BadValue("obs: expected shape (", envs, ", obs_size), got ", Describe(input.shape));
  }
  CheckFits(env, static_cast<int>(input.shape[1]), policy);
  const std::vector<int32_t> ids = ReadPolicyIds(policy_ids, env, policy);
  const bool discrete = policy.discrete();
  const NewArray actions = discrete ? MakeArray({envs}, ArrayType::kInt64)
                                    : MakeArray({envs, policy.action_size()}, ArrayType::kFloat32);
  const NewArray log_probs = MakeArray({envs}, ArrayType::kFloat32);
  const NewArray given =
      discrete ? actions : MakeArray({envs, policy.action_size()}, ArrayType::kFloat32);
  WithoutGil([&] {
    env.Act(policy, ids, static_cast<const double*>(input.data),
            {actions.data, static_cast<float*>(log_probs.data),
             discrete ? nullptr : static_cast<float*>(given.data)});
  });
  return py::make_tuple(actions.array, log_probs.array, given.array);
}

py::dict RunRollout(VectorEnv& env, const Policy& policy, const py::object& policy_ids,
                    int num_steps, const py::dict& out, const py::object& explain) {
  if (num_steps < 1) throw BadValue("num_steps: expected at least 1, got ", num_steps);
  CheckFits(env, env.spec().obs_size, policy);
  const std::vector<int32_t> ids = ReadPolicyIds(policy_ids, env, policy);
  std::vector<py::object> keep;
  const Rollout::Request request{&policy, ids, num_steps,
                                 ReadViews(out, env, policy, num_steps, keep)};
  const VectorEnv::RolloutOutcome outcome =
      WithoutGil([&] { return env.RunRollout(request, PythonInterrupted); });
  if (outcome.interrupted) throw py::error_already_set();
  py::dict episodes = EpisodeArrays(outcome.episodes, env, request.out.obs_dtype);
  if (!outcome.failures.empty()) ThrowEnvError(outcome.failures, episodes, explain);
  return episodes;
}

}  // namespace pyfastenv
