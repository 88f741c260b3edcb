// Class _core.VectorEnv: checks arrays, allocates results, releases the GIL, builds infos.
#include "core/vector_env.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "bindings/arguments.h"
#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/interpreter_end.h"
#include "bindings/keywords.h"
#include "bindings/lane_warnings.h"
#include "bindings/names.h"
#include "bindings/numpy_interop.h"
#include "bindings/params.h"
#include "bindings/pixels.h"
#include "bindings/results.h"
#include "bindings/rollout.h"
#include "bindings/task.h"
#include "core/stacked_env.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

AutoresetMode ToAutoresetMode(const std::string& mode) {
  return Lookup<AutoresetMode>("autoreset_mode",
                               {{"NextStep", AutoresetMode::kNextStep},
                                {"SameStep", AutoresetMode::kSameStep},
                                {"Disabled", AutoresetMode::kDisabled}},
                               mode);
}

DType ToDType(const std::string& dtype) {
  return Lookup<DType>("obs_dtype", {{"float32", DType::kFloat32}, {"float64", DType::kFloat64}},
                       dtype);
}

Engine ToEngine(const std::string& engine) {
  return Lookup<Engine>(
      "engine", {{"auto", Engine::kAuto}, {"mujoco", Engine::kMujoco}, {"lanes", Engine::kLanes}},
      engine);
}

/// How a vector environment is made, as Python says it.
struct Arguments {
  std::string env_id;
  py::dict kwargs;         // of the environment
  std::string assets_dir;  // gymnasium's models
  int num_envs = 0;
  int num_threads = 0;
  std::string autoreset_mode;
  std::string obs_dtype;                 // empty: gymnasium's
  std::optional<int> max_episode_steps;  // none: gymnasium's
  bool copy = true;
  bool infos = true;
  int frame_stack = 1;   // of the latest observations, which are one together
  bool amended = false;  // returns are made of what `amend` is told
  std::string engine;
  py::list seeds;  // one int per environment
  // an own task in place of a registered environment, and who words its errors; or None
  py::object task;
  py::object explain;
  py::object pixels;  // what pictures its observations are, or None

  explicit Arguments(const py::kwargs& given) {
    Keywords keywords("VectorEnv", given);
    keywords.Read("env_id", env_id);
    keywords.Read("kwargs", kwargs);
    keywords.Read("assets_dir", assets_dir);
    keywords.Read("num_envs", num_envs);
    keywords.Read("num_threads", num_threads);
    keywords.Read("autoreset_mode", autoreset_mode);
    keywords.Read("obs_dtype", obs_dtype);
    keywords.Read("max_episode_steps", max_episode_steps);
    keywords.Read("copy", copy);
    keywords.Read("infos", infos);
    keywords.Read("frame_stack", frame_stack);
    keywords.Read("amended", amended);
    keywords.Read("engine", engine);
    keywords.Read("seeds", seeds);
    keywords.Read("task", task);
    keywords.Read("explain", explain);
    keywords.Read("pixels", pixels);
    keywords.CheckAllRead();
    for (const auto& [name, value] :
         {std::pair("num_envs", num_envs), std::pair("num_threads", num_threads),
          std::pair("frame_stack", frame_stack)}) {
      if (value >= 1) continue;
      throw BadValue(name, ": expected a positive integer, got ", value);
    }
  }
};

class PyVectorEnv {
 public:
  explicit PyVectorEnv(const Arguments& arguments) {
    const DefaultFloats floats;  // models are read and stepped
    const Params params = ToParams(arguments.kwargs);
    const Engine engine = ToEngine(arguments.engine);
    const auto task = arguments.task.is_none() ? nullptr : ReadTask(arguments.task);
    const EnvEntry* entry = task ? nullptr : &FindEnv(arguments.env_id);
    ModelCache models(arguments.assets_dir, task ? task->parts : ModelParts::kPhysics, engine);
    const auto make = [&]() -> std::unique_ptr<Environment> {
      auto env = task ? MakeFunctionEnv(task, models) : entry->make(params, models, entry->version);
      if (arguments.frame_stack == 1) return env;
      return std::make_unique<StackedEnv>(std::move(env), arguments.frame_stack);
    };
    std::unique_ptr<Environment> first = make();
    explain_ = arguments.explain;
    params.CheckAllKnown(arguments.env_id);
    if (engine == Engine::kLanes && first->spec().model_path.empty()) {
      throw BadValue("engine='lanes': ", arguments.env_id, " is not a MuJoCo environment");
    }

    VectorEnvOptions options;
    options.num_envs = arguments.num_envs;
    options.num_threads = arguments.num_threads;
    options.autoreset_mode = ToAutoresetMode(arguments.autoreset_mode);
    options.obs_dtype =
        arguments.obs_dtype.empty() ? first->spec().obs_dtype : ToDType(arguments.obs_dtype);
    options.amended = arguments.amended;
    options.max_episode_steps = arguments.max_episode_steps.value_or(
        task ? task->max_episode_steps : entry->max_episode_steps);
    const std::string& path = first->spec().model_path;
    // what snapshots must agree on: the environment and its arguments, the model's path resolved
    options.identity = arguments.env_id + (task ? task->identity : "") + '(' + params.Identity() +
                       ')' + path + arguments.autoreset_mode +
                       std::to_string(options.max_episode_steps);
    if (!task && !path.empty() && !path.starts_with(arguments.assets_dir)) {
      options.identity += ModelDigest(*models.Load(path));  // of a file that may be edited
    }
    if (!arguments.pixels.is_none()) {
      const Pixels pixels = ReadPixels(arguments.pixels);
      if (first->spec().model_path.empty()) {
        throw BadValue("pixels: ", arguments.env_id, " has no MuJoCo model to draw");
      }
      AddPixels(pixels, task.get(), *first, models, options);
    }
    const auto entropy = ReadSeeds(arguments.seeds, ReadIds(py::none(), arguments.num_envs));
    WithoutGil([&] {
      env_ =
          std::make_unique<VectorEnv>([&] { return first ? std::move(first) : make(); }, options);
      env_->Seed(entropy);
    });
    stop_at_end_.emplace([this] { env_->Close(); });
    results_ = std::make_unique<ResultMaker>(ResultShape{
        env_->spec(), options.num_envs, env_->obs_layout(), arguments.copy, arguments.infos});
  }

  // ---- reset and step ----

  // seeds: None, or one int or None per environment. mask: None or bools. Returns (obs, infos).
  py::tuple Reset(const py::object& seeds, const py::object& mask,
                  const std::vector<double>& options) {
    const std::vector<int32_t> ids =
        mask.is_none() ? ReadIds(mask, env_->num_envs()) : ReadMask(mask, env_->num_envs());
    const auto entropy = ReadSeeds(seeds, ids);
    Results results = results_->Allocate(env_->num_envs(), DType::kFloat32);
    const VectorEnv::Outcome outcome = WithoutGil([&] {
      if (!mask.is_none()) env_->CopyObservations(results.views.obs);
      return env_->Reset(ids, entropy, options, results.views, PythonInterrupted);
    });
    if (outcome.interrupted) throw py::error_already_set();
    const py::dict infos = results_->Infos(results, outcome.finals, nullptr);
    py::tuple result = py::make_tuple(results.obs, infos);
    if (!outcome.failures.empty()) ThrowEnvError(outcome.failures, result, explain_);
    return result;
  }

  py::tuple Step(py::handle actions) {
    const InputArray input = ReadActions(actions, env_->spec(), env_->num_envs(), nullptr);
    Results results = results_->Allocate(env_->num_envs(), input.dtype);
    const VectorEnv::Outcome outcome = WithoutGil([&] {
      return env_->Step(ActionsOf(input, env_->spec()), results.views, PythonInterrupted);
    });
    if (outcome.interrupted) throw py::error_already_set();
    WarnOfBrokenTrust();
    py::tuple result = results_->Pack(results, outcome.finals, nullptr);
    if (!outcome.failures.empty()) ThrowEnvError(outcome.failures, result, explain_);
    return result;
  }

  // Returns the episodes that ended, a dict of arrays; see RunRollout.
  py::dict Rollout(const Policy& policy, const py::object& policy_ids, int num_steps,
                   const py::dict& out) {
    py::dict result = RunRollout(*env_, policy, policy_ids, num_steps, out, explain_);
    WarnOfBrokenTrust();
    return result;
  }

  py::tuple Act(const Policy& policy, const py::object& policy_ids, const py::object& obs) {
    return RunPolicy(*env_, policy, policy_ids, obs);
  }

  // ---- what is decided after a step ----

  void Amend(const py::object& env_ids, const py::object& rewards, const py::object& ended) {
    const std::vector<int32_t> ids = ReadIds(env_ids, env_->num_envs());
    const std::vector<int64_t> shape = {static_cast<int64_t>(ids.size())};
    const InputArray added = ReadNumbers(rewards, "rewards");
    const InputArray flags = ReadNumbers(ended, "ended");
    if (added.shape != shape || flags.shape != shape) {
      throw BadValue("amend: expected one reward and one flag per environment");
    }
    const auto* values = static_cast<const double*>(flags.data);
    std::vector<uint8_t> ends(ids.size());
    for (size_t i = 0; i < ends.size(); ++i) ends[i] = values[i] != 0.0 ? 1 : 0;
    WithoutGil(
        [&] { env_->Amend(ids, {static_cast<const double*>(added.data), ids.size()}, ends); });
  }

  // Returns and lengths of the present episodes.
  py::tuple Episodes() {
    const NewArray returns = MakeArray({env_->num_envs()}, ArrayType::kFloat64);
    const NewArray lengths = MakeArray({env_->num_envs()}, ArrayType::kInt32);
    WithoutGil([&] {
      env_->GetEpisodes(static_cast<double*>(returns.data), static_cast<int32_t*>(lengths.data));
    });
    return py::make_tuple(returns.array, lengths.array);
  }

  py::object Observations() {
    NewArray obs = results_->MakeObs(env_->num_envs());
    WithoutGil([&] { env_->CopyObservations(obs.data); });
    return std::move(obs.array);
  }

  // ---- send and receive ----

  void Send(py::handle actions, const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids, env_->num_envs());
    const InputArray input = ReadActions(actions, env_->spec(), static_cast<int>(ids.size()), &ids);
    WithoutGil([&] { env_->Send(ids, ActionsOf(input, env_->spec())); });
  }

  void SendReset(const py::object& seeds, const std::vector<double>& options,
                 const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids, env_->num_envs());
    const auto entropy = ReadSeeds(seeds, ids);
    WithoutGil([&] { env_->SendReset(ids, entropy, options); });
  }

  py::tuple Receive(std::optional<int> min_envs, std::optional<int> max_envs,
                    std::optional<double> timeout) {
    const auto check = [this](std::optional<int> n, const char* name) {
      if (n && (*n < 1 || *n > env_->num_envs())) {
        throw BadValue(name, ": expected 1 to ", env_->num_envs(), ", got ", *n);
      }
      return n.value_or(0);
    };
    const int least = check(min_envs, "min_envs");
    const int most = check(max_envs, "max_envs");
    if (most > 0 && least > most) throw BadValue("recv: min_envs is larger than max_envs");
    if (timeout && !(*timeout >= 0.0)) throw BadValue("timeout: expected seconds >= 0, or None");
    VectorEnv::Received received =
        WithoutGil([&] { return env_->Receive({least, most, timeout}, PythonInterrupted); });
    if (received.interrupted) throw py::error_already_set();
    Results results =
        results_->Allocate(static_cast<int>(received.ids.size()), received.action_dtype);
    const auto finals = WithoutGil([&] { return env_->Gather(received, results.views); });
    py::tuple result = results_->Pack(results, finals, &received.ids);
    if (!received.failures.empty()) ThrowEnvError(received.failures, result, explain_);
    WarnOfBrokenTrust();
    return result;
  }

  // ---- state ----

  py::object GetState(const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids, env_->num_envs());
    while (true) {
      const size_t bytes = env_->state_bytes();
      NewArray states = MakeArray({static_cast<int64_t>(ids.size()), static_cast<int64_t>(bytes)},
                                  ArrayType::kUInt8);
      const std::span<uint8_t> out(static_cast<uint8_t*>(states.data), ids.size() * bytes);
      // false: another thread has added a model field meanwhile
      if (WithoutGil([&] { return env_->GetState(ids, out); })) return std::move(states.array);
    }
  }

  void SetState(const py::object& states, const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids, env_->num_envs());
    const std::vector<int64_t> shape = {static_cast<int64_t>(ids.size()),
                                        static_cast<int64_t>(env_->state_bytes())};
    const std::string expected =
        Describe(shape) + " uint8 from get_state (with the same model fields)";
    const InputArray input = ReadBytes(states, "state", [&] { return expected; });
    if (input.shape != shape) {
      throw BadValue("state: expected ", expected, ", got ", Describe(input.array));
    }
    const std::span<const uint8_t> in(static_cast<const uint8_t*>(input.data),
                                      static_cast<size_t>(shape[0] * shape[1]));
    WithoutGil([&] { env_->SetState(ids, in); });
  }

  void SetTasks(const py::object& tasks, const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids, env_->num_envs());
    const int size = env_->spec().task_size();
    if (size == 0) throw BadValue("reset_task: this environment has no tasks");
    const InputArray input = ReadNumbers(tasks, "tasks");
    const std::vector<int64_t> expected = {static_cast<int64_t>(ids.size()), size};
    if (input.shape != expected) {
      throw BadValue("tasks: expected shape ", Describe(expected), ", got ", Describe(input.shape));
    }
    CheckFinite(input, "tasks", &ids);
    WithoutGil([&] { env_->SetTasks(ids, static_cast<const double*>(input.data)); });
  }

  py::object GetTasks() {
    NewArray tasks = MakeArray({env_->num_envs(), env_->spec().task_size()}, ArrayType::kFloat64);
    const std::vector<int32_t> all = ReadIds(py::none(), env_->num_envs());
    WithoutGil([&] { env_->GetTasks(all, static_cast<double*>(tasks.data)); });
    return std::move(tasks.array);
  }

  void SetField(const std::string& name, const py::object& values, const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids, env_->num_envs());
    const InputArray input = ReadNumbers(values, "values");
    RowField slot = DescribeField(name);
    const std::vector<int64_t> one(slot.shape.begin(), slot.shape.end());
    std::vector<int64_t> each = one;
    each.insert(each.begin(), static_cast<int64_t>(ids.size()));
    if (input.shape != one && input.shape != each) {
      throw BadValue("set_model_field: ", name, ": expected shape ", Describe(each), " or ",
                     Describe(one), ", got ", Describe(input.shape));
    }
    const bool shared = input.shape != each;
    if (!shared) {
      CheckFinite(input, "values", &ids);
    } else if (!AllFinite(input, 0, NumElements(input.shape))) {
      throw BadValue("values: expected finite numbers, got NaN or infinity");
    }
    const auto* data = static_cast<const double*>(input.data);
    const auto size = slot.defaults.size();
    std::vector<double> repeated;
    if (shared) {
      for (size_t i = 0; i < ids.size(); ++i) repeated.insert(repeated.end(), data, data + size);
      data = repeated.data();
    }
    WithoutGil([&] {
      env_->CheckUsable(ids, "set_model_field");
      slot = env_->AddField(name);
      env_->SetField(slot, ids, data);
    });
  }

  py::object GetField(const std::string& name) {
    const RowField field = DescribeField(name);
    std::vector<int64_t> shape(field.shape.begin(), field.shape.end());
    shape.insert(shape.begin(), env_->num_envs());
    NewArray array = MakeArray(shape, ArrayType::kFloat64);
    const std::vector<double> values = WithoutGil([&] { return env_->GetField(name); });
    std::copy(values.begin(), values.end(), static_cast<double*>(array.data));
    return std::move(array.array);
  }

  // An environment's row, and the fields set so far: name, offset in the row and shape.
  py::tuple Row(int env_id) {
    const VectorEnv::RowCopy row = WithoutGil([&] { return env_->CopyRow(env_id); });
    NewArray values = MakeArray({static_cast<int64_t>(row.values.size())}, ArrayType::kFloat64);
    std::copy(row.values.begin(), row.values.end(), static_cast<double*>(values.data));
    py::list fields;
    for (const RowField& field : row.fields) {
      fields.append(py::make_tuple(field.name, field.offset, field.shape));
    }
    return py::make_tuple(values.array, fields);
  }

  py::tuple RandomState(int env_id) {
    const auto words = WithoutGil([&] { return env_->RandomState(env_id); });
    return py::make_tuple(words[0], words[1], words[2], words[3], words[4], words[5]);
  }

  void SetRandomState(int env_id, const std::array<uint64_t, 6>& words) {
    WithoutGil([&] { env_->SetRandomState(env_id, words); });
  }

  py::dict Stats() const {
    const auto stats = env_->stats();
    py::dict result;
    result["steps"] = stats.steps;
    result["episodes"] = stats.episodes;
    result["diverged"] = stats.diverged;
    result["errors"] = stats.failures;
    const EngineReport engine = env_->engine();
    result["engine"] = engine.name;
    result["engine_reason"] = engine.reason;
    result["lane_steps"] = engine.lane_steps;
    result["lane_misses"] = engine.misses;
    result["lane_checks"] = engine.checks;
    result["lane_differences"] = engine.differences;
    return result;
  }

  void UseBuffers(const std::vector<ResultMaker::Buffers>& sets) { results_->UseBuffers(sets); }

  void Close() {
    WithoutGil([&] { env_->Close(); });
  }

  const VectorEnv& env() const { return *env_; }

 private:
  // Has the pool draw what the workers step.
  static void AddPixels(const Pixels& pixels, const TaskDescription* task, const Environment& first,
                        ModelCache& models, VectorEnvOptions& options) {
    PixelOptions drawn = pixels.options;
    if (task != nullptr) {
      drawn.own_fields = DrawnFields(*task);
      for (FieldPlace& field : drawn.own_fields) {
        field.offset += first.InitialLayout().cache().offset;
      }
    }
    options.frames = drawn.frames;
    options.obs_numbers = pixels.with_state;
    options.identity += pixels.identity;
    options.make_frames =
        WithoutGil([&] { return PixelCamera::Maker(models.Load(first.spec().model_path), drawn); });
  }

  RowField DescribeField(const std::string& name) {
    try {
      return WithoutGil([&] { return env_->DescribeField(name); });
    } catch (const std::invalid_argument& error) {
      throw BadValue(error.what());
    }
  }

  std::unique_ptr<VectorEnv> env_;
  std::optional<StopAtInterpreterEnd> stop_at_end_;  // of env_
  std::unique_ptr<ResultMaker> results_;
  py::object explain_;
};

template <auto kMember>
auto Of(const PyVectorEnv& self) {
  return (self.env().*kMember)();
}

template <auto kMember>
auto OfSpec(const PyVectorEnv& self) {
  return self.env().spec().*kMember;
}

py::list TaskList(const EnvSpec& spec) {
  py::list tasks;
  for (const auto& task : spec.tasks) {
    py::dict item;
    item["name"] = task.name;
    item["size"] = task.size;
    item["sampler"] = task.sampler == TaskField::Sampler::kSign ? "sign" : "uniform";
    item["low"] = task.low;
    item["high"] = task.high;
    tasks.append(item);
  }
  return tasks;
}

}  // namespace

void BindVectorEnv(py::module_& m) {
  py::class_<PyVectorEnv>(m, "VectorEnv", "The compiled part of pyfastenv.FastVectorEnv.")
      .def(py::init([](const py::KWArgs<py::object>& given) {
        return std::make_unique<PyVectorEnv>(Arguments(given));
      }))
      .def("reset", &PyVectorEnv::Reset, py::arg("seeds"), py::arg("mask"), py::arg("options"))
      .def("step", &PyVectorEnv::Step, py::arg("actions"))
      .def("rollout", &PyVectorEnv::Rollout, py::arg("policy"), py::arg("policy_ids"),
           py::arg("num_steps"), py::arg("out"))
      .def("act", &PyVectorEnv::Act, py::arg("policy"), py::arg("policy_ids"), py::arg("obs"))
      .def("amend", &PyVectorEnv::Amend, py::arg("env_ids"), py::arg("rewards"), py::arg("ended"))
      .def("episodes", &PyVectorEnv::Episodes)
      .def("observations", &PyVectorEnv::Observations)
      .def("send", &PyVectorEnv::Send, py::arg("actions"), py::arg("env_ids"))
      .def("send_reset", &PyVectorEnv::SendReset, py::arg("seeds"), py::arg("options"),
           py::arg("env_ids"))
      .def("recv", &PyVectorEnv::Receive, py::arg("min_envs"), py::arg("max_envs"),
           py::arg("timeout"))
      .def("get_state", &PyVectorEnv::GetState, py::arg("env_ids"))
      .def("set_state", &PyVectorEnv::SetState, py::arg("states"), py::arg("env_ids"))
      .def("set_tasks", &PyVectorEnv::SetTasks, py::arg("tasks"), py::arg("env_ids"))
      .def("get_tasks", &PyVectorEnv::GetTasks)
      .def("set_model_field", &PyVectorEnv::SetField, py::arg("name"), py::arg("values"),
           py::arg("env_ids"))
      .def("get_model_field", &PyVectorEnv::GetField, py::arg("name"))
      .def("row", &PyVectorEnv::Row, py::arg("env_id"))
      .def("random_state", &PyVectorEnv::RandomState, py::arg("env_id"))
      .def("set_random_state", &PyVectorEnv::SetRandomState, py::arg("env_id"), py::arg("words"))
      .def("stats", &PyVectorEnv::Stats)
      .def("use_buffers", &PyVectorEnv::UseBuffers, py::arg("buffers"))
      .def("close", &PyVectorEnv::Close)
      .def_property_readonly("closed", &Of<&VectorEnv::closed>)
      .def_property_readonly("num_threads", &Of<&VectorEnv::num_threads>)
      .def_property_readonly("state_bytes", &Of<&VectorEnv::state_bytes>)
      .def_property_readonly("obs_low", &OfSpec<&EnvSpec::obs_low>)
      .def_property_readonly("obs_high", &OfSpec<&EnvSpec::obs_high>)
      .def_property_readonly("obs_dtype",
                             [](const PyVectorEnv& self) {
                               return self.env().options().obs_dtype == DType::kFloat32 ? "float32"
                                                                                        : "float64";
                             })
      .def_property_readonly("obs_bytes", &Of<&VectorEnv::obs_bytes>)
      .def_property_readonly("num_actions", &OfSpec<&EnvSpec::num_actions>)
      .def_property_readonly("action_low", &OfSpec<&EnvSpec::action_low>)
      .def_property_readonly("action_high", &OfSpec<&EnvSpec::action_high>)
      .def_property_readonly(
          "max_episode_steps",
          [](const PyVectorEnv& self) { return self.env().options().max_episode_steps; })
      .def_property_readonly("render_fps", &OfSpec<&EnvSpec::render_fps>)
      .def_property_readonly("model_path", &OfSpec<&EnvSpec::model_path>)
      .def_property_readonly("tasks",
                             [](const PyVectorEnv& self) { return TaskList(self.env().spec()); })
      .def_property_readonly("reset_options", [](const PyVectorEnv& self) {
        std::vector<std::pair<std::string, double>> options;
        for (const auto& option : self.env().spec().reset_options) {
          options.emplace_back(option.name, option.fallback);
        }
        return options;
      });
}

}  // namespace pyfastenv
