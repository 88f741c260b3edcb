// Class _core.VectorEnv: checks arrays, allocates results, releases the GIL, builds infos.
#include "core/vector_env.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/numpy_interop.h"
#include "bindings/params.h"
#include "bindings/rollout.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

AutoresetMode ToAutoresetMode(const std::string& mode) {
  if (mode == "NextStep") return AutoresetMode::kNextStep;
  if (mode == "SameStep") return AutoresetMode::kSameStep;
  if (mode == "Disabled") return AutoresetMode::kDisabled;
  throw UsageError(Code::kValue,
                   "autoreset_mode: expected NextStep, SameStep or Disabled, got '" + mode + "'");
}

DType ToDType(const std::string& dtype) {
  if (dtype == "float32") return DType::kFloat32;
  if (dtype == "float64") return DType::kFloat64;
  throw UsageError(Code::kValue, "obs_dtype: expected float32 or float64, got '" + dtype + "'");
}

/// The arrays of one call's results, owned by Python, written by the core.
struct Results {
  py::object obs, rewards, terminations, truncations;
  std::vector<py::object> columns;
  std::vector<uint8_t> kinds;
  DType action_dtype = DType::kFloat32;
  OutputViews views;
};

class PyVectorEnv {
  using Finals = std::vector<std::unique_ptr<FinalStep>>;

 public:
  PyVectorEnv(const std::string& env_id, const py::dict& kwargs, const std::string& assets_dir,
              int num_envs, int num_threads, const std::string& autoreset_mode,
              const std::string& obs_dtype, std::optional<int> max_episode_steps, bool copy,
              bool infos, const py::list& seeds)
      : copy_(copy), infos_(infos) {
    const EnvEntry& entry = FindEnv(env_id);
    if (num_envs < 1) {
      throw UsageError(Code::kValue,
                       "num_envs: expected a positive integer, got " + std::to_string(num_envs));
    }
    if (num_threads < 1) {
      throw UsageError(Code::kValue, "num_threads: expected a positive integer, got " +
                                         std::to_string(num_threads));
    }
    const Params params = ToParams(kwargs);
    ModelCache models(assets_dir);
    std::unique_ptr<Environment> first = entry.make(params, models);
    params.CheckAllKnown(env_id);

    VectorEnvOptions options;
    options.num_envs = num_envs;
    options.num_threads = num_threads;
    options.autoreset_mode = ToAutoresetMode(autoreset_mode);
    options.obs_dtype = obs_dtype.empty() ? first->spec().obs_dtype : ToDType(obs_dtype);
    options.max_episode_steps = max_episode_steps.value_or(entry.max_episode_steps);
    // what snapshots must agree on: the environment and its arguments, the model's path resolved
    options.identity = env_id + std::string(py::repr(kwargs)) + first->spec().model_path +
                       autoreset_mode + std::to_string(options.max_episode_steps);
    for (int i = 0; i < num_envs; ++i) all_ids_.push_back(i);
    const auto entropy = Entropy(seeds, all_ids_);
    WithoutGil([&] {
      env_ = std::make_unique<VectorEnv>(
          [&] { return first ? std::move(first) : entry.make(params, models); }, options);
      env_->Seed(entropy);
    });
    column_names_ = InternNames();
  }

  // ---- reset and step ----

  // seeds: None, or one int or None per environment. mask: None or bools. Returns (obs, infos).
  py::tuple Reset(const py::object& seeds, const py::object& mask,
                  const std::vector<double>& options) {
    const std::vector<int32_t> ids = mask.is_none() ? all_ids_ : MaskedIds(mask);
    const auto entropy = Entropy(seeds, ids);
    Results results = Allocate(env_->num_envs(), DType::kFloat32);
    const VectorEnv::Outcome outcome = WithoutGil([&] {
      if (!mask.is_none()) env_->CopyObservations(results.views.obs);
      return env_->Reset(ids, entropy, options, results.views, Interrupted);
    });
    if (outcome.interrupted) throw py::error_already_set();
    const py::dict infos = Infos(results, outcome.finals, nullptr);
    py::tuple result = py::make_tuple(results.obs, infos);
    if (!outcome.failures.empty()) ThrowEnvError(outcome.failures, result);
    return result;
  }

  py::tuple Step(py::handle actions) {
    const InputArray input = ReadActions(actions, env_->num_envs());
    Results results = Allocate(env_->num_envs(), input.dtype);
    const VectorEnv::Outcome outcome =
        WithoutGil([&] { return env_->Step(ActionsOf(input), results.views, Interrupted); });
    if (outcome.interrupted) throw py::error_already_set();
    py::tuple result = Pack(results, outcome.finals, nullptr);
    if (!outcome.failures.empty()) ThrowEnvError(outcome.failures, result);
    return result;
  }

  // Returns the episodes that ended, a dict of arrays; see RunRollout.
  py::dict Rollout(const Policy& policy, const py::object& policy_ids, int num_steps,
                   const py::dict& out) {
    return RunRollout(*env_, policy, policy_ids, num_steps, out);
  }

  // ---- send and receive ----

  void Send(py::handle actions, const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids);
    const InputArray input = ReadActions(actions, static_cast<int>(ids.size()), &ids);
    WithoutGil([&] { env_->Send(ids, ActionsOf(input)); });
  }

  void SendReset(const py::object& seeds, const std::vector<double>& options,
                 const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids);
    const auto entropy = Entropy(seeds, ids);
    WithoutGil([&] { env_->SendReset(ids, entropy, options); });
  }

  py::tuple Receive(std::optional<int> min_envs, std::optional<int> max_envs,
                    std::optional<double> timeout) {
    const auto check = [this](std::optional<int> n, const char* name) {
      if (n && (*n < 1 || *n > env_->num_envs())) {
        throw UsageError(Code::kValue, std::string(name) + ": expected 1 to " +
                                           std::to_string(env_->num_envs()) + ", got " +
                                           std::to_string(*n));
      }
      return n.value_or(0);
    };
    const int least = check(min_envs, "min_envs");
    const int most = check(max_envs, "max_envs");
    if (most > 0 && least > most) {
      throw UsageError(Code::kValue, "recv: min_envs is larger than max_envs");
    }
    if (timeout && !(*timeout >= 0.0)) {
      throw UsageError(Code::kValue, "timeout: expected seconds >= 0, or None");
    }
    const VectorEnv::Ready ready =
        WithoutGil([&] { return env_->Wait(least, most, timeout, Interrupted); });
    if (ready.interrupted) throw py::error_already_set();
    Results results = Allocate(static_cast<int>(ready.ids.size()), ready.action_dtype);
    const auto finals = WithoutGil([&] { return env_->Gather(ready.ids, results.views); });
    py::tuple result = Pack(results, finals, &ready.ids);
    if (!ready.failures.empty()) ThrowEnvError(ready.failures, result);
    return result;
  }

  // ---- state ----

  py::object GetState(const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids);
    const auto bytes = static_cast<int64_t>(env_->state_bytes());
    NewArray states = MakeArray({static_cast<int64_t>(ids.size()), bytes}, ArrayType::kUInt8);
    WithoutGil([&] { env_->GetState(ids, static_cast<uint8_t*>(states.data)); });
    return std::move(states.array);
  }

  void SetState(const py::object& states, const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids);
    const std::vector<int64_t> shape = {static_cast<int64_t>(ids.size()),
                                        static_cast<int64_t>(env_->state_bytes())};
    const std::string expected =
        Describe(shape) + " uint8 from get_state (with the same model fields)";
    const InputArray input = ReadBytes(states, "state", [&] { return expected; });
    if (input.shape != shape) {
      throw UsageError(Code::kValue,
                       "state: expected " + expected + ", got " + Describe(input.array));
    }
    WithoutGil([&] { env_->SetState(ids, static_cast<const uint8_t*>(input.data)); });
  }

  void SetTasks(const py::object& tasks, const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids);
    const int size = env_->spec().task_size();
    if (size == 0) throw UsageError(Code::kValue, "reset_task: this environment has no tasks");
    const InputArray input = ReadNumbers(tasks, "tasks");
    const std::vector<int64_t> expected = {static_cast<int64_t>(ids.size()), size};
    if (input.shape != expected) {
      throw UsageError(Code::kValue, "tasks: expected shape " + Describe(expected) + ", got " +
                                         Describe(input.shape));
    }
    CheckFinite(input, "tasks", &ids);
    WithoutGil([&] { env_->SetTasks(ids, static_cast<const double*>(input.data)); });
  }

  py::object GetTasks() {
    NewArray tasks = MakeArray({env_->num_envs(), env_->spec().task_size()}, ArrayType::kFloat64);
    WithoutGil([&] { env_->GetTasks(all_ids_, static_cast<double*>(tasks.data)); });
    return std::move(tasks.array);
  }

  void SetField(const std::string& name, const py::object& values, const py::object& env_ids) {
    const std::vector<int32_t> ids = ReadIds(env_ids);
    const InputArray input = ReadNumbers(values, "values");
    FieldSlot slot = DescribeField(name);
    const std::vector<int64_t> one(slot.shape.begin(), slot.shape.end());
    std::vector<int64_t> each = one;
    each.insert(each.begin(), static_cast<int64_t>(ids.size()));
    if (input.shape != one && input.shape != each) {
      throw UsageError(Code::kValue, "set_model_field: " + name + ": expected shape " +
                                         Describe(each) + " or " + Describe(one) + ", got " +
                                         Describe(input.shape));
    }
    const bool shared = input.shape != each;
    CheckFinite(input, "values", shared ? &all_ids_ : &ids);
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
    const FieldSlot slot = DescribeField(name);
    std::vector<int64_t> shape(slot.shape.begin(), slot.shape.end());
    shape.insert(shape.begin(), env_->num_envs());
    NewArray values = MakeArray(shape, ArrayType::kFloat64);
    auto* out = static_cast<double*>(values.data);
    WithoutGil([&] {
      if (env_->HasField(name)) {
        env_->GetField(slot, all_ids_, out);
      } else {
        for (int i = 0; i < env_->num_envs(); ++i) {
          out = std::copy(slot.defaults.begin(), slot.defaults.end(), out);
        }
      }
    });
    return std::move(values.array);
  }

  // The fields set so far: name -> offset in the row and shape.
  py::list Fields() {
    const auto fields = WithoutGil([&] { return env_->Fields(); });
    py::list list;
    for (const auto& [name, slot] : fields) {
      list.append(py::make_tuple(name, slot.offset, slot.shape));
    }
    return list;
  }

  py::object Row(int env_id) {
    NewArray row = MakeArray({env_->spec().state_size}, ArrayType::kFloat64);
    WithoutGil([&] { env_->CopyRow(env_id, static_cast<double*>(row.data)); });
    return std::move(row.array);
  }

  py::tuple RandomState(int env_id) {
    const auto words = WithoutGil([&] { return env_->RandomState(env_id); });
    return py::make_tuple(words[0], words[1], words[2], words[3]);
  }

  py::dict Stats() const {
    const auto stats = env_->stats();
    py::dict result;
    result["steps"] = stats.steps;
    result["episodes"] = stats.episodes;
    result["diverged"] = stats.diverged;
    result["errors"] = stats.failures;
    return result;
  }

  // The caller's arrays, sets of (obs, rewards, terminations, truncations) for all environments:
  // the next calls' results go into them in turn. An empty list: into arrays of our own again.
  void UseBuffers(const std::vector<std::array<py::object, 4>>& sets) {
    const int count = env_->num_envs();
    std::vector<Results> given;
    for (const auto& [obs, rewards, terminations, truncations] : sets) {
      Results results;
      results.obs = obs;
      results.rewards = rewards;
      results.terminations = terminations;
      results.truncations = truncations;
      results.views.obs = OutputData(obs, "obs", {count, env_->spec().obs_size},
                                     ToArrayType(env_->options().obs_dtype));
      results.views.rewards =
          static_cast<double*>(OutputData(rewards, "rewards", {count}, ArrayType::kFloat64));
      const auto flags = [&](const py::object& array, const char* name) {
        return static_cast<uint8_t*>(OutputData(array, name, {count}, ArrayType::kBool));
      };
      results.views.terminations = flags(terminations, "terminations");
      results.views.truncations = flags(truncations, "truncations");
      given.push_back(std::move(results));
    }
    given_.swap(given);
    given_next_ = 0;
  }

  void Close() {
    WithoutGil([&] { env_->Close(); });
  }

  const VectorEnv& env() const { return *env_; }

 private:
  struct ColumnNames {
    py::object name;
    py::object mask;
  };

  // Interned once: building infos costs no string work.
  std::vector<ColumnNames> InternNames() const {
    std::vector<ColumnNames> names;
    for (const auto& info : env_->spec().infos) {
      names.push_back({py::str(info.name), py::str("_" + info.name)});
    }
    return names;
  }

  FieldSlot DescribeField(const std::string& name) {
    try {
      return WithoutGil([&] { return env_->DescribeField(name); });
    } catch (const std::invalid_argument& error) {
      throw UsageError(Code::kValue, error.what());
    }
  }

  // ---- arguments ----

  std::vector<int32_t> ReadIds(const py::object& env_ids) const {
    if (env_ids.is_none()) return all_ids_;
    const InputArray input =
        ReadIntegers(env_ids, "env_ids", [] { return std::string("a vector of integers"); });
    if (input.shape.size() != 1) {
      throw UsageError(Code::kValue,
                       "env_ids: expected a vector, got shape " + Describe(input.shape));
    }
    if (input.shape[0] == 0) throw UsageError(Code::kValue, "env_ids: expected at least one id");
    const auto* ids = static_cast<const int64_t*>(input.data);
    std::vector<int32_t> result;
    result.reserve(static_cast<size_t>(input.shape[0]));
    for (int64_t i = 0; i < input.shape[0]; ++i) {
      if (ids[i] < 0 || ids[i] >= env_->num_envs()) {
        throw UsageError(Code::kIndex, "env_ids: expected ids from 0 to " +
                                           std::to_string(env_->num_envs() - 1) + ", got " +
                                           std::to_string(ids[i]));
      }
      result.push_back(static_cast<int32_t>(ids[i]));
    }
    return result;
  }

  std::vector<int32_t> MaskedIds(const py::object& mask) const {
    const auto* values = static_cast<const uint8_t*>(mask.cast<py::buffer>().request().ptr);
    std::vector<int32_t> ids;
    for (int i = 0; i < env_->num_envs(); ++i) {
      if (values[i] != 0) ids.push_back(i);
    }
    return ids;
  }

  static std::vector<std::vector<uint32_t>> Entropy(const py::object& seeds,
                                                    const std::vector<int32_t>& ids) {
    std::vector<std::vector<uint32_t>> entropy;
    if (seeds.is_none()) return entropy;
    const py::sequence sequence = seeds;
    entropy.resize(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const py::object seed = sequence[static_cast<size_t>(ids[i])];
      if (!seed.is_none()) entropy[i] = SeedWords(seed);
    }
    return entropy;
  }

  // an int as little-endian 32-bit words, without leading zeros
  static std::vector<uint32_t> SeedWords(const py::object& seed) {
    const unsigned long long small = PyLong_AsUnsignedLongLong(seed.ptr());  // NOLINT
    if (PyErr_Occurred() == nullptr) {
      std::vector<uint32_t> words = {static_cast<uint32_t>(small)};
      if ((small >> 32) != 0) words.push_back(static_cast<uint32_t>(small >> 32));
      return words;
    }
    PyErr_Clear();
    const auto num_words = (seed.attr("bit_length")().cast<size_t>() + 31) / 32;
    const auto bytes = seed.attr("to_bytes")(num_words * 4, "little").cast<std::string>();
    std::vector<uint32_t> words(num_words);
    for (size_t i = 0; i < bytes.size(); ++i) {
      words[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * (i % 4));
    }
    return words;
  }

  InputArray ReadActions(py::handle actions, int count,
                         const std::vector<int32_t>* ids = nullptr) const {
    const EnvSpec& spec = env_->spec();
    const bool discrete = spec.num_actions > 0;
    std::vector<int64_t> shape = {count};
    if (!discrete) shape.push_back(spec.action_size());
    const auto expected = [&] { return Describe(shape) + (discrete ? " int64" : " float32"); };
    InputArray input = discrete ? ReadIntegers(actions, "actions", expected)
                                : ReadActionValues(actions, "actions", expected);
    if (input.shape != shape) {  // a single number is no batch at all
      throw UsageError(input.shape.empty() ? Code::kType : Code::kValue,
                       "actions: expected " + expected() + ", got " + Describe(input.given));
    }
    if (discrete) {
      const auto* values = static_cast<const int64_t*>(input.data);
      const auto bad = [&](int64_t a) { return a < 0 || a >= spec.num_actions; };
      if (std::any_of(values, values + count, bad)) {
        std::vector<int32_t> bad_ids;
        for (int i = 0; i < count; ++i) {
          if (bad(values[i])) {
            bad_ids.push_back(ids != nullptr ? (*ids)[static_cast<size_t>(i)] : i);
          }
        }
        throw UsageError(Code::kValue, "actions: expected 0 to " +
                                           std::to_string(spec.num_actions - 1) +
                                           ", got others for environments " + JoinIds(bad_ids));
      }
    } else {
      CheckFinite(input, "actions", ids);
    }
    return input;
  }

  static void CheckFinite(const InputArray& input, const char* name,
                          const std::vector<int32_t>* ids) {
    const int64_t count = NumElements(input.shape);
    if (AllFinite(input, 0, count)) return;
    const int64_t rows = input.shape.empty() ? 1 : input.shape[0];
    std::vector<int32_t> bad;
    for (int64_t i = 0; i < rows; ++i) {
      if (!AllFinite(input, i * (count / rows), count / rows)) {
        bad.push_back(ids != nullptr ? (*ids)[static_cast<size_t>(i)] : static_cast<int32_t>(i));
      }
    }
    throw UsageError(Code::kValue, std::string(name) +
                                       ": expected finite numbers, got NaN or infinity for " +
                                       "environments " + JoinIds(bad));
  }

  ActionViews ActionsOf(const InputArray& input) const {
    const size_t item = ItemSize(input.dtype);
    return {input.data, input.dtype, item * static_cast<size_t>(env_->spec().action_size())};
  }

  // ---- results ----

  static constexpr size_t kRingSize = 4;

  // With copy=False, results are views of the next of kRingSize sets of arrays.
  Results& RingSlot() {
    if (ring_.empty()) {
      for (size_t i = 0; i < kRingSize; ++i) ring_.push_back(NewResults(env_->num_envs()));
    }
    ring_next_ = (ring_next_ + 1) % kRingSize;
    return ring_[ring_next_];
  }

  Results NewResults(int count) const {
    Results results;
    const NewArray obs =
        MakeArray({count, env_->spec().obs_size}, ToArrayType(env_->options().obs_dtype));
    const NewArray rewards = MakeArray({count}, ArrayType::kFloat64);
    const NewArray terminations = MakeArray({count}, ArrayType::kBool);
    const NewArray truncations = MakeArray({count}, ArrayType::kBool);
    results.obs = obs.array;
    results.rewards = rewards.array;
    results.terminations = terminations.array;
    results.truncations = truncations.array;
    results.views.obs = obs.data;
    results.views.rewards = static_cast<double*>(rewards.data);
    results.views.terminations = static_cast<uint8_t*>(terminations.data);
    results.views.truncations = static_cast<uint8_t*>(truncations.data);
    return results;
  }

  Results Allocate(int count, DType action_dtype) {
    Results results;
    if (copy_ && given_.empty()) {
      results = NewResults(count);
    } else {
      results = given_.empty() ? RingSlot() : given_[given_next_++ % given_.size()];
      if (count < env_->num_envs()) {
        const py::slice head(0, count, 1);
        for (py::object* array :
             {&results.obs, &results.rewards, &results.terminations, &results.truncations}) {
          *array = (*array)[head];
        }
      }
    }
    // kinds of environments that a masked reset leaves alone stay kNoInfo
    results.kinds.assign(static_cast<size_t>(count), kNoInfo);
    results.views.kinds = results.kinds.data();
    results.action_dtype = action_dtype;
    AddInfoColumns(results, action_dtype);
    return results;
  }

  void AddInfoColumns(Results& results, DType action_dtype) const {
    if (!infos_) return;
    const auto count = static_cast<int64_t>(results.kinds.size());
    for (const auto& info : env_->spec().infos) {
      const DType dtype = ColumnDType(info, action_dtype);
      NewArray column = Column(info, count, dtype);
      results.views.columns.push_back({column.data, dtype, info.width()});
      results.columns.push_back(std::move(column.array));
    }
  }

  static DType ColumnDType(const InfoField& info, DType action_dtype) {
    if (info.type == InfoField::Type::kInt64) return DType::kInt64;
    const bool follows =
        info.type == InfoField::Type::kActionDType && action_dtype != DType::kInt64;
    return follows ? action_dtype : DType::kFloat64;
  }

  static NewArray Column(const InfoField& info, int64_t count, DType dtype) {
    if (info.size == 0) return MakeZeros({count}, ToArrayType(dtype));
    return MakeZeros({count, info.size}, ToArrayType(dtype));
  }

  py::tuple Pack(const Results& results, const Finals& finals, const std::vector<int32_t>* ids) {
    const py::dict infos = Infos(results, finals, ids);
    return py::make_tuple(results.obs, results.rewards, results.terminations, results.truncations,
                          infos);
  }

  // A bool array: which kinds have one of `bits`; null if none has.
  static py::object Mask(const std::vector<uint8_t>& kinds, uint8_t bits) {
    NewArray mask = MakeArray({static_cast<int64_t>(kinds.size())}, ArrayType::kBool);
    auto* values = static_cast<uint8_t*>(mask.data);
    uint8_t any = 0;
    for (size_t i = 0; i < kinds.size(); ++i) {
      values[i] = (kinds[i] & bits) != 0 ? 1 : 0;
      any |= values[i];
    }
    return any != 0 ? std::move(mask.array) : py::object();
  }

  void AddColumns(py::dict& infos, const std::vector<py::object>& columns,
                  const std::vector<uint8_t>& kinds) const {
    const auto& fields = env_->spec().infos;
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool always = fields[i].when == InfoField::When::kAlways;
      py::object mask = Mask(kinds, always ? kStepInfo | kResetInfo : kStepInfo);
      if (!mask) continue;
      PyDict_SetItem(infos.ptr(), column_names_[i].name.ptr(), columns[i].ptr());
      PyDict_SetItem(infos.ptr(), column_names_[i].mask.ptr(), mask.ptr());
    }
  }

  py::dict Infos(const Results& results, const Finals& finals, const std::vector<int32_t>* ids) {
    py::dict infos;
    AddColumns(infos, results.columns, results.kinds);
    if (!finals.empty()) AddFinals(infos, results, finals);
    if (py::object diverged = Mask(results.kinds, kDiverged)) {
      infos["diverged"] = diverged;
      infos["_diverged"] = Mask(results.kinds, kDiverged);
    }
    if (ids != nullptr) {
      NewArray env_id = MakeArray({static_cast<int64_t>(ids->size())}, ArrayType::kInt32);
      std::copy(ids->begin(), ids->end(), static_cast<int32_t*>(env_id.data));
      NewArray mask = MakeArray({static_cast<int64_t>(ids->size())}, ArrayType::kBool);
      std::fill_n(static_cast<uint8_t*>(mask.data), ids->size(), uint8_t{1});
      infos["env_id"] = env_id.array;
      infos["_env_id"] = mask.array;
    }
    return infos;
  }

  // SAME_STEP: final_obs (an object array) and final_info, gymnasium's names and shapes. Results
  // whose kind has kFinal correspond to `finals` in order.
  void AddFinals(py::dict& infos, const Results& results, const Finals& finals) const {
    const EnvSpec& spec = env_->spec();
    const auto count = static_cast<int64_t>(results.kinds.size());
    const py::object final_obs = MakeNones(count);
    Results final_results;  // only columns and kinds are used
    final_results.kinds.assign(results.kinds.size(), kNoInfo);
    AddInfoColumns(final_results, results.action_dtype);
    size_t next = 0;
    for (size_t i = 0; i < results.kinds.size(); ++i) {
      if ((results.kinds[i] & kFinal) == 0) continue;
      const FinalStep& final_step = *finals[next++];
      NewArray obs = MakeArray({spec.obs_size}, ToArrayType(env_->options().obs_dtype));
      StoreAs(env_->options().obs_dtype, final_step.obs.data(), spec.obs_size, obs.data);
      final_obs[py::int_(i)] = obs.array;
      final_results.kinds[i] = final_step.kind;
      size_t offset = 0;
      for (size_t k = 0; k < final_results.columns.size(); ++k) {
        const InfoColumn& column = final_results.views.columns[k];
        const auto width = static_cast<size_t>(column.width);
        if ((final_step.kind & kStepInfo) != 0 || spec.infos[k].when == InfoField::When::kAlways) {
          StoreAs(column.dtype, final_step.info.data() + offset, column.width,
                  static_cast<uint8_t*>(column.data) + i * width * ItemSize(column.dtype));
        }
        offset += width;
      }
    }
    py::dict final_info;
    AddColumns(final_info, final_results.columns, final_results.kinds);
    infos["final_obs"] = final_obs;
    infos["_final_obs"] = Mask(results.kinds, kFinal);
    infos["final_info"] = final_info;
    infos["_final_info"] = Mask(results.kinds, kFinal);
  }

  std::unique_ptr<VectorEnv> env_;
  bool copy_;
  bool infos_;
  std::vector<int32_t> all_ids_;
  std::vector<ColumnNames> column_names_;
  std::vector<Results> ring_;
  size_t ring_next_ = 0;
  std::vector<Results> given_;
  size_t given_next_ = 0;
};

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
      .def(py::init<const std::string&, const py::dict&, const std::string&, int, int,
                    const std::string&, const std::string&, std::optional<int>, bool, bool,
                    const py::list&>(),
           py::kw_only(), py::arg("env_id"), py::arg("kwargs"), py::arg("assets_dir"),
           py::arg("num_envs"), py::arg("num_threads"), py::arg("autoreset_mode"),
           py::arg("obs_dtype"), py::arg("max_episode_steps"), py::arg("copy"), py::arg("infos"),
           py::arg("seeds"))
      .def("reset", &PyVectorEnv::Reset, py::arg("seeds"), py::arg("mask"), py::arg("options"))
      .def("step", &PyVectorEnv::Step, py::arg("actions"))
      .def("rollout", &PyVectorEnv::Rollout, py::arg("policy"), py::arg("policy_ids"),
           py::arg("num_steps"), py::arg("out"))
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
      .def("stats", &PyVectorEnv::Stats)
      .def("use_buffers", &PyVectorEnv::UseBuffers, py::arg("buffers"))
      .def("close", &PyVectorEnv::Close)
      .def_property_readonly("closed", [](const PyVectorEnv& self) { return self.env().closed(); })
      .def_property_readonly("num_threads",
                             [](const PyVectorEnv& self) { return self.env().num_threads(); })
      .def_property_readonly("state_bytes",
                             [](const PyVectorEnv& self) { return self.env().state_bytes(); })
      .def_property_readonly("obs_low",
                             [](const PyVectorEnv& self) { return self.env().spec().obs_low; })
      .def_property_readonly("obs_high",
                             [](const PyVectorEnv& self) { return self.env().spec().obs_high; })
      .def_property_readonly("obs_dtype",
                             [](const PyVectorEnv& self) {
                               return self.env().options().obs_dtype == DType::kFloat32 ? "float32"
                                                                                        : "float64";
                             })
      .def_property_readonly("num_actions",
                             [](const PyVectorEnv& self) { return self.env().spec().num_actions; })
      .def_property_readonly("action_low",
                             [](const PyVectorEnv& self) { return self.env().spec().action_low; })
      .def_property_readonly("action_high",
                             [](const PyVectorEnv& self) { return self.env().spec().action_high; })
      .def_property_readonly(
          "max_episode_steps",
          [](const PyVectorEnv& self) { return self.env().options().max_episode_steps; })
      .def_property_readonly("render_fps",
                             [](const PyVectorEnv& self) { return self.env().spec().render_fps; })
      .def_property_readonly("model_path",
                             [](const PyVectorEnv& self) { return self.env().spec().model_path; })
      .def_property_readonly("tasks",
                             [](const PyVectorEnv& self) { return TaskList(self.env().spec()); })
      .def_property_readonly("reset_options",
                             [](const PyVectorEnv& self) {
                               std::vector<std::pair<std::string, double>> options;
                               for (const auto& option : self.env().spec().reset_options) {
                                 options.emplace_back(option.name, option.fallback);
                               }
                               return options;
                             })
      .def_property_readonly("fields", &PyVectorEnv::Fields);
}

}  // namespace pyfastenv
