// Class _core.RolloutPool: checks arrays and sizes, releases the GIL. pyfastenv/physics is its
// caller, which has made sure that addresses are those of living mjModel and mjData.
#include <mujoco/mujoco.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bindings/address.h"
#include "bindings/gil.h"
#include "bindings/keywords.h"
#include "bindings/lane_warnings.h"
#include "bindings/numpy_interop.h"
#include "bindings/plans.h"
#include "core/errors.h"
#include "mujoco/lane_trust.h"
#include "mujoco/model_image.h"
#include "physics/rollout_pool.h"

namespace pyfastenv {

namespace {

using physics::PlanCache;
using physics::RolloutPool;
using physics::RolloutRequest;

/// A call, as Python says it.
struct Arguments {
  std::vector<uintptr_t> models;       // one per rollout
  std::vector<uintptr_t> data;         // one per thread
  std::vector<uintptr_t> data_models;  // that the data were made for
  int num_steps = 0;
  int control_spec = 0;
  int chunk_size = 0;
  py::object initial_state, initial_warmstart, control, state, sensordata;

  explicit Arguments(const py::kwargs& given) {
    Keywords keywords("rollout", given);
    keywords.Read("models", models);
    keywords.Read("data", data);
    keywords.Read("data_models", data_models);
    keywords.Read("nstep", num_steps);
    keywords.Read("control_spec", control_spec);
    keywords.Read("chunk_size", chunk_size);
    keywords.Read("initial_state", initial_state);
    keywords.Read("initial_warmstart", initial_warmstart);
    keywords.Read("control", control);
    keywords.Read("state", state);
    keywords.Read("sensordata", sensordata);
    keywords.CheckAllRead();
  }
};

void CheckData(const Arguments& arguments, int num_threads) {
  const auto count = static_cast<int64_t>(arguments.data.size());
  if (count != num_threads) {
    throw BadValue("data: expected one MjData per thread, ", num_threads, ", got ", count);
  }
  std::set<uintptr_t> seen;
  for (size_t i = 0; i < arguments.data.size(); ++i) {
    const std::string which = "data[" + std::to_string(i) + "]";
    if (At<const mjData>(arguments.data[i])->threadpool != 0) {
      throw BadValue(which,
                     " has a thread pool of its own (mju_threadpool), "
                     "which does not combine with rollouts' threads");
    }
    if (!seen.insert(arguments.data[i]).second) {
      throw BadValue(which, " is given twice: two threads would write into it");
    }
  }
  const uintptr_t* checked = nullptr;
  for (size_t r = 0; r < arguments.models.size(); ++r) {
    const uintptr_t* model = &arguments.models[r];
    if (checked != nullptr && *checked == *model) continue;
    checked = model;
    for (size_t i = 0; i < arguments.data.size(); ++i) {
      if (DataFits(*At<const mjModel>(*model), *At<const mjModel>(arguments.data_models[i]))) {
        continue;
      }
      throw BadValue("data[", i,
                     "] was made for a model of other sizes than that of "
                     "rollout ",
                     r, ": make it from the (largest) model, MjData(model)");
    }
  }
}

// Numbers of shape `shape`, whose leading axes may be 1 for all; `strides` gets those of the
// leading axes. Null for None.
const double* ReadInput(const py::object& object, const char* name,
                        const std::vector<int64_t>& shape, std::vector<InputArray>& keep,
                        std::initializer_list<size_t*> strides) {
  if (object.is_none()) return nullptr;
  const InputArray& input = keep.emplace_back(ReadNumbers(object, name));
  bool fits = input.shape.size() == shape.size() && input.shape.back() == shape.back();
  for (size_t axis = 0; fits && axis + 1 < shape.size(); ++axis) {
    fits = input.shape[axis] == shape[axis] || input.shape[axis] == 1;
  }
  if (!fits) {
    throw BadValue(name, ": expected shape ", Describe(shape), ", leading axes may be 1, got ",
                   Describe(input.shape));
  }
  size_t axis = 0;
  for (size_t* stride : strides) {
    size_t entries = 1;
    for (size_t later = axis + 1; later < shape.size(); ++later) {
      entries *= static_cast<size_t>(input.shape[later]);
    }
    *stride = input.shape[axis] == 1 ? 0 : entries;
    ++axis;
  }
  return static_cast<const double*>(input.data);
}

std::byte* WriteableBytes(const py::object& object, const char* name,
                          const std::vector<int64_t>& shape) {
  if (object.is_none()) return nullptr;
  return static_cast<std::byte*>(OutputData(object, name, shape, ArrayType::kFloat64));
}

// What Python callbacks raise: each leaves its exception to its thread, and the engine raises an
// error. Ctrl-C comes this way too where they run.
class CallbackErrors {
 public:
  /// Takes the calling thread's: its text, empty if there is none.
  std::string Take() {
    const py::gil_scoped_acquire gil;
    if (PyErr_Occurred() == nullptr) return {};
    py::error_already_set error;
    std::string text = std::string(py::str(error.type().attr("__name__"))) + ": " +
                       std::string(py::str(error.value()));
    if (!error.matches(PyExc_Exception)) {
      last_.emplace(std::move(error));
      ends_all_.store(true);
    }
    return text;
  }

  /// Whether one was no Exception, but KeyboardInterrupt, say.
  bool ends_all() const { return ends_all_.load(); }

  /// Raises that one; with the GIL.
  [[noreturn]] void Raise() const { throw py::error_already_set(*last_); }

 private:
  std::optional<py::error_already_set> last_;  // with the GIL
  std::atomic<bool> ends_all_{false};
};

using Failures = py::typing::List<py::typing::Tuple<int, std::string>>;

Failures Run(RolloutPool& pool, const py::KWArgs<py::object>& given) {
  const Arguments arguments(given);
  CheckData(arguments, pool.num_threads());
  if (arguments.num_steps < 1 || arguments.chunk_size < 1 || arguments.models.empty()) {
    throw BadValue("expected at least one rollout, step and chunk_size");
  }
  std::vector<const mjModel*> models;
  models.reserve(arguments.models.size());
  for (const uintptr_t address : arguments.models) models.push_back(At<const mjModel>(address));
  RolloutRequest request;
  request.models = models;
  for (const uintptr_t address : arguments.data) request.data.push_back(At<mjData>(address));
  request.chunk_size = arguments.chunk_size;
  const int64_t state_size = mj_stateSize(models[0], mjSTATE_FULLPHYSICS);
  const int64_t control_size = mj_stateSize(models[0], arguments.control_spec);
  const int64_t nv = models[0]->nv, sensor_size = models[0]->nsensordata;
  for (const mjModel* m : models) {
    if (m == models[0]) continue;
    if (mj_stateSize(m, mjSTATE_FULLPHYSICS) != state_size || m->nv != nv ||
        mj_stateSize(m, arguments.control_spec) != control_size || m->nsensordata != sensor_size) {
      throw BadValue("models are not compatible");
    }
  }

  const auto rollouts = static_cast<int64_t>(models.size());
  const int64_t steps = arguments.num_steps;
  std::vector<InputArray> keep;
  request.initial_states = ReadInput(arguments.initial_state, "initial_state",
                                     {rollouts, state_size}, keep, {&request.initial_state_stride});
  request.warmstarts = ReadInput(arguments.initial_warmstart, "initial_warmstart", {rollouts, nv},
                                 keep, {&request.warmstart_stride});
  physics::Motion& motion = request.motion;
  motion.num_steps = arguments.num_steps;
  motion.control_spec = static_cast<unsigned>(arguments.control_spec);
  motion.controls = ReadInput(arguments.control, "control", {rollouts, steps, control_size}, keep,
                              {&motion.control_item_stride, &motion.control_step_stride});
  const auto record = [&](physics::Record written, const py::object& array, const char* name,
                          int64_t size) {
    written.bytes = static_cast<size_t>(size) * sizeof(double);
    written.to = WriteableBytes(array, name, {rollouts, steps, size});
    if (written.to != nullptr && size > 0) motion.records.push_back(written);
  };
  physics::Record states, sensors;
  states.spec = mjSTATE_FULLPHYSICS;
  sensors.field = *FindDataField(*models[0], "sensordata");
  sensors.sensordata = true;
  record(states, arguments.state, "state", state_size);
  record(sensors, arguments.sensordata, "sensordata", sensor_size);

  CallbackErrors errors;
  motion.take_callback_error = [&] { return errors.Take(); };
  const auto interrupted = [&] { return errors.ends_all() || PythonInterrupted(); };
  const physics::Outcome outcome =
      WithoutGil([&] { return pool.Run(std::move(request), interrupted); });
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (errors.ends_all()) errors.Raise();
  WarnOfBrokenTrust();
  Failures failures;
  for (const EnvFailure& failure : outcome.failures) {
    failures.append(py::make_tuple(failure.env_id, failure.message));
  }
  return failures;
}

}  // namespace

void BindPhysicsRollout(py::module_& m) {
  py::class_<RolloutPool>(m, "RolloutPool", "Threads for pyfastenv.physics.rollout.")
      .def(py::init(
               [](int num_threads) { return std::make_unique<RolloutPool>(num_threads, Plans()); }),
           py::kw_only(), py::arg("num_threads"))
      .def_property_readonly("num_threads", &RolloutPool::num_threads)
      .def(
          "lane_steps",
          [](RolloutPool& pool) { return WithoutGil([&] { return pool.CountLaneSteps(); }); },
          "Steps that lanes were asked for so far, and those of them that they left to mj_step.")
      .def("rollout", &Run,
           "Runs rollouts into state and sensordata; returns (rollout, message) of those in which "
           "MuJoCo raised.");
  m.def(
      "lanes_refusal",
      [](uintptr_t address, bool unchecked, bool sensordata) {
        PlanCache& plans = Plans();
        const auto& model = *At<const mjModel>(address);
        return WithoutGil([&] {
          return unchecked ? plans.RefusalUnchecked(model, sensordata)
                           : plans.Refusal(model, sensordata);
        });
      },
      py::arg("model_address"), py::kw_only(), py::arg("unchecked") = false,
      py::arg("sensordata") = true,
      "Why a model, and its sensordata, is not stepped in lanes; empty if it is. Unchecked: "
      "without "
      "the trial against mj_step, to find where they differ.");
  m.def(
      "engine_reason",
      [](uintptr_t model, bool sensordata) {
        PlanCache& plans = Plans();
        return WithoutGil([&] { return plans.Reason(*At<const mjModel>(model), sensordata); });
      },
      py::arg("model_address"), py::kw_only(), py::arg("sensordata") = true,
      "The same, or that mj_step is faster in use; empty if lanes step the model now.");
  m.def("disturb_lanes", &DisturbLanes, py::arg("on"),
        "For tests: while on, results of lanes are wrong in a bit, which must be found.");
}

}  // namespace pyfastenv
