#include "bindings/task.h"

#include <mujoco/mujoco.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/keywords.h"
#include "bindings/names.h"
#include "bindings/numpy_interop.h"
#include "envs/task_draws.h"
#include "envs/task_symbols.h"
#include "mujoco/owned.h"

namespace pyfastenv {

namespace py = pybind11;

namespace {

// What numba leaves for an exception: a pickle of (class, arguments, location) among the code's
// constants. It is only read after the call, with the GIL, by pyfastenv.tasks.pool.explain.
std::string EncodeException(const void* exception) {
  struct ExceptionInfo {
    const char* pickle;
    int32_t size;
    const void* arguments;
    const void* unwrap;
    int32_t num_arguments;
  };
  const auto* info = static_cast<const ExceptionInfo*>(exception);
  return info == nullptr || info->pickle == nullptr
             ? std::string()
             : std::string(info->pickle, static_cast<size_t>(info->size));
}

InfoField::Type ToInfoType(const std::string& dtype) {
  return Lookup<InfoField::Type>("info",
                                 {{"float64", InfoField::Type::kFloat64},
                                  {"float32", InfoField::Type::kFloat32},
                                  {"int64", InfoField::Type::kInt64}},
                                 dtype);
}

py::dict Fields(const std::vector<StructField>& fields) {
  py::dict result;
  for (const StructField& field : fields) {
    if (*field.dtype == '\0') continue;
    result[py::str(field.name)] = py::make_tuple(field.offset, field.dtype, field.size);
  }
  return result;
}

py::dict StructLayouts() {
  py::dict frame;
  for (const auto& [name, offset] : FrameOffsets()) frame[py::str(name)] = offset;
  py::dict layouts;
  layouts["frame"] = frame;
  py::dict fresh;
  for (const auto& [name, bit] : FreshBits()) fresh[py::str(name)] = bit;
  layouts["fresh"] = fresh;
  py::dict draws;
  draws["most_axes"] = DrawOperand::kMostAxes;
  draws["words"] = sizeof(DrawOperand) / 8;
  layouts["draws"] = draws;
  layouts["data"] = Fields(DataFields());
  layouts["data_numbers"] = Fields(DataNumbers());
  layouts["model"] = Fields(ModelFields());
  layouts["option"] = Fields(OptionFields());
  layouts["contact"] = Fields(ContactFields());
  layouts["contact_bytes"] = ContactBytes();
  return layouts;
}

py::dict SymbolAddresses() {
  py::dict symbols;
  for (const auto& [name, address] : TaskSymbols()) {
    symbols[py::str(name)] = reinterpret_cast<uintptr_t>(address);
  }
  for (const auto& [name, address] : NumpyLoops()) {
    symbols[py::str("pyfastenv_np_" + name)] = reinterpret_cast<uintptr_t>(address);
  }
  return symbols;
}

}  // namespace

std::shared_ptr<const TaskDescription> ReadTask(const py::object& given) {
  auto task = std::make_shared<TaskDescription>();
  uintptr_t model = 0;
  bool cameras = false;
  std::string action_dtype;
  std::vector<std::tuple<std::string, bool, std::string, std::optional<int>>> infos;
  std::vector<std::tuple<std::string, int, double, double>> commands;
  std::vector<std::tuple<std::string, std::string, double, double, bool>> draws;
  uintptr_t functions[4] = {};
  py::array_t<double, py::array::c_style> params;

  const auto keywords = given.cast<py::kwargs>();
  Keywords read("VectorEnv: task", keywords);
  read.Read("name", task->name);
  read.Read("identity", task->identity);
  read.Read("model", model);
  read.Read("cameras", cameras);
  read.Read("frame_skip", task->frame_skip);
  read.Read("control_every", task->control_every);
  read.Read("max_episode_steps", task->max_episode_steps);
  read.Read("external_forces", task->external_forces);
  read.Read("up_to_date", task->up_to_date);
  read.Read("passive_reset", task->passive_reset);
  read.Read("moves_mocap", task->moves_mocap);
  read.Read("reads", task->reads);
  read.Read("action_dtype", action_dtype);
  read.Read("num_actions", task->num_actions);
  read.Read("action_low", task->action_low);
  read.Read("action_high", task->action_high);
  read.Read("obs_size", task->obs_size);
  read.Read("memory_size", task->memory_size);
  read.Read("lasting_size", task->lasting_size);
  read.Read("params", params);
  read.Read("infos", infos);
  read.Read("commands", commands);
  read.Read("draws", draws);
  read.Read("own_narrow", task->own_narrow);
  read.Read("reset", functions[0]);
  read.Read("control", functions[1]);
  read.Read("step", functions[2]);
  read.Read("observation", functions[3]);
  read.CheckAllRead();

  // its own of the mujoco.MjModel at this address
  task->model = CopyModel(*reinterpret_cast<const mjModel*>(model));
  task->parts = cameras ? ModelParts::kAll : ModelParts::kPhysics;
  task->action_dtype = action_dtype == "float32" ? DType::kFloat32 : DType::kFloat64;
  task->params.assign(params.data(), params.data() + params.size());
  for (const auto& [name, always, dtype, size] : infos) {
    task->infos.push_back({.name = name,
                           .when = always ? InfoField::When::kAlways : InfoField::When::kStep,
                           .type = ToInfoType(dtype),
                           .size = size.value_or(InfoField::kScalar)});
  }
  for (const auto& [name, size, low, high] : commands) {
    task->commands.push_back({.name = name, .size = size, .low = low, .high = high});
  }
  for (const auto& [field, kind, low, high, together] : draws) {
    const auto known = Lookup<FieldDraw::Kind>("draws",
                                               {{"scale", FieldDraw::Kind::kScale},
                                                {"shift", FieldDraw::Kind::kShift},
                                                {"uniform", FieldDraw::Kind::kUniform},
                                                {"own", FieldDraw::Kind::kOwn}},
                                               kind);
    task->draws.push_back({field, known, low, high, together});
  }
  task->reset = reinterpret_cast<TaskFunction>(functions[0]);
  task->control = reinterpret_cast<TaskFunction>(functions[1]);
  task->step = reinterpret_cast<TaskFunction>(functions[2]);
  task->observation = reinterpret_cast<TaskFunction>(functions[3]);
  task->encode_exception = EncodeException;
  return task;
}

void BindTask(py::module_& m) {
  m.def("task_struct_layouts", &StructLayouts,
        "Where compiled tasks find what: offsets, dtypes and sizes by struct and name.");
  m.def("task_symbols", &SymbolAddresses,
        "Addresses of the functions that compiled tasks call, by name.");
}

}  // namespace pyfastenv
