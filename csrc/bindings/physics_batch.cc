// Class _core.Batch: checks arrays and sizes, releases the GIL. pyfastenv/physics is its caller,
// which has made sure that addresses are those of living mjModel and mjData.
#include <mujoco/mujoco.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/address.h"
#include "bindings/gil.h"
#include "bindings/keywords.h"
#include "bindings/lane_warnings.h"
#include "bindings/numpy_interop.h"
#include "bindings/plans.h"
#include "core/errors.h"
#include "lanes/lane_stepper.h"
#include "lanes/number_access.h"
#include "mujoco/error_trap.h"
#include "mujoco/model_features.h"
#include "mujoco/model_image.h"
#include "physics/batch.h"
#include "physics/stages.h"

namespace pyfastenv {

namespace {

using physics::Batch;
using physics::BoundField;
using physics::BoundOutput;
using physics::Motion;
using physics::Operation;
using physics::Record;
using physics::Simulations;
using physics::Status;

// The address of an array of the caller's with exactly so many bytes, contiguous and writeable.
std::byte* Bytes(const py::object& array, const std::string& name, size_t bytes) {
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) {
    PyErr_Clear();
    throw BadValue(name, ": expected a writeable C-contiguous array, got ",
                   Py_TYPE(array.ptr())->tp_name);
  }
  auto* const data = static_cast<std::byte*>(view.buf);
  const auto size = static_cast<size_t>(view.len);
  PyBuffer_Release(&view);
  if (size == bytes) return data;
  throw BadValue(name, ": expected ", bytes, " bytes, got ", size);
}

void FindInLanes(const std::string& name, physics::Output& output) {
  output.sensordata = name == "sensordata";
  // made from the state, and written by others than a step
#define PYFASTENV_LANES_FIELD(field, entries, numbers)               \
  if (name == #field && lanes::Field::field >= lanes::Field::xpos && \
      lanes::Field::field != lanes::Field::cfrc_ext) {               \
    output.lane_field = lanes::Field::field;                         \
  }
  PYFASTENV_LANES_FIELDS(PYFASTENV_LANES_FIELD)
#undef PYFASTENV_LANES_FIELD
}

DataField FindField(const mjModel& m, const std::string& name) {
  if (const auto field = FindDataField(m, name)) return *field;
  throw BadValue(name, " is no field of MjData of a fixed size");
}

using Failures = py::typing::List<py::typing::Tuple<int, std::string>>;

// The batch with what Python holds for it.
class PythonBatch {
 public:
  explicit PythonBatch(const py::KWArgs<py::object>& given) {
    Keywords keywords("Batch", given);
    uintptr_t model = 0;
    std::vector<uintptr_t> data;
    int num_threads = 0;
    bool persistent = false;
    py::object state, warning, status;
    keywords.Read("model", model);
    keywords.Read("nsim", nsim_);
    keywords.Read("data", data);
    keywords.Read("num_threads", num_threads);
    keywords.Read("persistent", persistent);
    keywords.Read("state", state);
    keywords.Read("warning", warning);
    keywords.Read("status", status);
    keywords.CheckAllRead();
    const auto count = static_cast<size_t>(nsim_);
    const auto num_data = persistent ? count : static_cast<size_t>(num_threads);
    if (nsim_ < 1 || num_threads < 1 || data.size() != num_data) {
      throw BadValue("Batch: expected simulations, threads and their data");
    }
    model_ = At<const mjModel>(model);
    shared_data_ = persistent ? nullptr : At<const mjData>(data[0]);
    CheckShares(*model_, "model");
    Simulations all;
    all.model = model_;
    for (const uintptr_t address : data) all.data.push_back(At<mjData>(address));
    all.persistent = persistent;
    all.row_size = static_cast<size_t>(mj_stateSize(model_, mjSTATE_INTEGRATION));
    all.rows = Numbers(state, "state", count * all.row_size);
    all.warnings = reinterpret_cast<mjWarningStat*>(
        Bytes(warning, "warning", count * mjNWARNING * sizeof(mjWarningStat)));
    status_ = reinterpret_cast<int32_t*>(Bytes(status, "status", count * sizeof(int32_t)));
    kept_ = {state, warning, status};
    batch_ = std::make_unique<Batch>(std::move(all), num_threads, Plans());
  }

  void Bind(const std::string& name, const py::object& array) {
    BoundOutput output;
    output.field = FindField(*model_, name);
    FindInLanes(name, output);
    output.to = Bytes(array, name, static_cast<size_t>(nsim_) * output.field.bytes);
    if (output.field.bytes == 0) return;  // nothing to copy, and no sensors to ask lanes for
    kept_.push_back(array);
    WithoutGil([&] { batch_->AddOutput(output); });
  }

  void SetFields(const std::map<std::string, py::object>& arrays) {
    std::vector<BoundField> fields;
    std::vector<py::object> kept;
    for (const auto& [name, array] : arrays) {
      const auto found = FindOwnField(*model_, name);
      if (!found) throw BadValue(name, " is no field of MjModel");
      BoundField own;
      own.field = *found;
      own.number = lanes::FindNumber(name);
      own.read = IsRead(*model_, name);
      own.copied = name == "bvh_aabb";
      own.values = Bytes(array, name, static_cast<size_t>(nsim_) * found->bytes);
      fields.push_back(own);
      kept.push_back(array);
    }
    WithoutGil([&] { batch_->SetFields(std::move(fields)); });
    kept_fields_ = std::move(kept);
  }

  bool HasSizesOf(uintptr_t address) const {
    return SameSizes(*At<const mjModel>(address), *model_);
  }

  void SetModels(const std::vector<uintptr_t>& addresses) {
    std::vector<const mjModel*> models;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const auto& m = *At<const mjModel>(addresses[i]);
      models.push_back(&m);
      if (SameSizes(m, *model_)) {
        const bool is_new = i == 0 || addresses[i] != addresses[i - 1];
        if (is_new) CheckShares(m, "models[" + std::to_string(i) + "]");
        continue;
      }
      throw BadValue("models[", i, "] has other sizes than the batch's model");
    }
    if (!models.empty() && models.size() != static_cast<size_t>(nsim_)) {
      throw BadValue("expected a model per simulation, ", nsim_, ", got ", models.size());
    }
    WithoutGil([&] { batch_->SetModels(std::move(models)); });
  }

  Failures Step(const py::object& ids, int nstep, int stage) {
    Motion motion;
    motion.num_steps = CheckSteps(nstep);
    motion.stage = CheckStage(stage);
    return Move(ReadIds(ids), motion);
  }

  Failures Rollout(const py::KWArgs<py::object>& given) {
    Keywords keywords("rollout", given);
    Motion motion;
    py::object ids, control;
    int nstep = 0, spec = 0;
    std::vector<std::tuple<std::optional<std::string>, int, py::object>> records;
    keywords.Read("ids", ids);
    keywords.Read("nstep", nstep);
    keywords.Read("control", control);
    keywords.Read("control_spec", spec);
    keywords.Read("records", records);
    keywords.CheckAllRead();
    const std::vector<int32_t> selected = ReadIds(ids);
    motion.num_steps = CheckSteps(nstep);
    motion.stops = true;
    const size_t rows = selected.size() * static_cast<size_t>(nstep);
    InputArray input;
    if (!control.is_none()) {
      motion.control_spec = static_cast<unsigned>(CheckSpec("control_spec", spec, mjSTATE_USER));
      motion.control_step_stride = static_cast<size_t>(mj_stateSize(model_, spec));
      motion.control_item_stride = motion.control_step_stride * static_cast<size_t>(nstep);
      input = ReadNumbers(control, "control");
      if (static_cast<size_t>(NumElements(input.shape)) != rows * motion.control_step_stride) {
        throw BadValue("control: expected shape ",
                       Describe({static_cast<int64_t>(selected.size()), nstep,
                                 static_cast<int64_t>(motion.control_step_stride)}),
                       ", got ", Describe(input.shape));
      }
      motion.controls = static_cast<const double*>(input.data);
    }
    for (const auto& [name, state, array] : records) {
      Record record;
      if (name) {
        record.field = FindField(*model_, *name);
        record.bytes = record.field.bytes;
        FindInLanes(*name, record);
      } else {
        record.spec = static_cast<unsigned>(CheckSpec("record", state, mjSTATE_INTEGRATION));
        record.bytes = sizeof(double) * static_cast<size_t>(mj_stateSize(model_, state));
      }
      record.to = Bytes(array, name.value_or("a recorded state"), rows * record.bytes);
      if (record.bytes > 0) motion.records.push_back(record);
    }
    return Move(selected, motion);
  }

  Failures Forward(const py::object& ids, int stage) {
    Motion motion;
    motion.stage = CheckStage(stage);
    return Move(ReadIds(ids), motion);
  }

  Failures Reset(const py::object& ids, const py::object& keyframes, int stage) {
    CheckStage(stage);
    const std::vector<int32_t> selected = ReadIds(ids);
    const int32_t* const keys = Int32(keyframes, "keyframe", selected.size());
    Operation operation;
    operation.run = [stage, keys](const mjModel& m, mjData& d, int item) {
      const int key = keys[item];
      if (key >= static_cast<int>(m.nkey)) mju_error("the model has no keyframe %d", key);
      if (key < 0) {
        mj_resetData(&m, &d);
      } else {
        mj_resetDataKeyframe(&m, &d, key);
      }
      physics::ComputeStages(m, d, stage);
    };
    operation.resets = true;
    return Apply(selected, operation);
  }

  Failures Jacobians(const py::object& ids, const py::object& body, const py::object& point,
                     const py::object& translation, const py::object& rotation) {
    const std::vector<int32_t> selected = ReadIds(ids);
    const size_t n = selected.size(), size = 3 * static_cast<size_t>(model_->nv);
    const int32_t* const bodies = Int32(body, "body", n);
    const double* const points = Numbers(point, "point", 3 * n);
    double* const jacp = Numbers(translation, "jacp", n * size);
    double* const jacr = Numbers(rotation, "jacr", n * size);
    Operation operation;
    operation.run = [=](const mjModel& m, mjData& d, int item) {
      const auto i = static_cast<size_t>(item);
      mj_kinematics(&m, &d);
      mj_comPos(&m, &d);
      mj_jac(&m, &d, jacp + i * size, jacr + i * size, points + 3 * i, bodies[i]);
    };
    return Apply(selected, operation);
  }

  Failures Rays(const py::KWArgs<py::object>& given) {
    Keywords keywords("ray", given);
    py::object ids, pnt, vec, geomgroup, bodyexclude, dist, geomid, normal;
    bool flg_static = true;
    int num_rays = 0;
    keywords.Read("ids", ids);
    keywords.Read("nray", num_rays);
    keywords.Read("pnt", pnt);
    keywords.Read("vec", vec);
    keywords.Read("geomgroup", geomgroup);
    keywords.Read("flg_static", flg_static);
    keywords.Read("bodyexclude", bodyexclude);
    keywords.Read("dist", dist);
    keywords.Read("geomid", geomid);
    keywords.Read("normal", normal);
    keywords.CheckAllRead();
    const std::vector<int32_t> selected = ReadIds(ids);
    const auto rays = static_cast<size_t>(num_rays);
    const size_t count = selected.size() * rays;
    const RayArrays arrays{Numbers(pnt, "pnt", 3 * count),
                           Numbers(vec, "vec", 3 * count),
                           geomgroup.is_none() ? nullptr
                                               : reinterpret_cast<const mjtByte*>(
                                                     Bytes(geomgroup, "geomgroup", mjNGROUP)),
                           Int32(bodyexclude, "bodyexclude", count),
                           Numbers(dist, "dist", count),
                           Int32(geomid, "geomid", count),
                           normal.is_none() ? nullptr : Numbers(normal, "normal", 3 * count)};
    Operation operation;
    operation.run = [=](const mjModel& m, mjData& d, int item) {
      mj_kinematics(&m, &d);
      mj_flex(&m, &d);
      const size_t first = static_cast<size_t>(item) * rays;
      for (size_t r = first; r < first + rays; ++r) {
        Cast(mj_ray, m, d, arrays, flg_static, r);
      }
    };
    return Apply(selected, operation);
  }

  std::pair<int64_t, int64_t> LaneSteps() {
    return WithoutGil([&] { return batch_->CountLaneSteps(); });
  }

 private:
  // Whether simulations of the model may share an mjData.
  void CheckShares(const mjModel& m, const std::string& name) const {
    if (shared_data_ == nullptr) return;
    try {
      CheckSupported(m, *shared_data_);
    } catch (const UsageError& error) {
      throw BadValue(name, ": ", error.what(), "; or use persistent=True");
    }
  }

  struct RayArrays {
    const double *pnt, *vec;
    const mjtByte* groups;
    const int32_t* excluded;
    double* dist;
    int32_t* geomid;
    double* normal;
  };

  // mj_ray gives normals in later versions of MuJoCo only
  template <class Ray>
  static void Cast(Ray ray, const mjModel& m, const mjData& d, const RayArrays& a, bool flg_static,
                   size_t r) {
    const auto with_static = static_cast<mjtByte>(flg_static);
    double* const normal = a.normal == nullptr ? nullptr : a.normal + 3 * r;
    int geom = -1;
    if constexpr (std::is_invocable_v<Ray, const mjModel*, const mjData*, const double*,
                                      const double*, const mjtByte*, mjtByte, int, int*, double*>) {
      a.dist[r] = ray(&m, &d, a.pnt + 3 * r, a.vec + 3 * r, a.groups, with_static, a.excluded[r],
                      &geom, normal);
    } else {
      if (normal != nullptr) mju_error("this version of MuJoCo's mj_ray gives no normals");
      a.dist[r] =
          ray(&m, &d, a.pnt + 3 * r, a.vec + 3 * r, a.groups, with_static, a.excluded[r], &geom);
    }
    a.geomid[r] = geom;
  }

  static double* Numbers(const py::object& array, const char* name, size_t count) {
    return reinterpret_cast<double*>(Bytes(array, name, count * sizeof(double)));
  }
  static int32_t* Int32(const py::object& array, const char* name, size_t count) {
    return reinterpret_cast<int32_t*>(Bytes(array, name, count * sizeof(int32_t)));
  }

  static int CheckSteps(int nstep) {
    if (nstep >= 1) return nstep;
    throw BadValue("nstep must be positive, got ", nstep);
  }
  static int CheckStage(int stage) {
    if (stage >= mjSTAGE_NONE && stage <= mjSTAGE_ACC) return stage;
    throw BadValue("stage: expected an mjtStage, got ", stage);
  }
  static int CheckSpec(const char* name, int spec, int allowed) {
    if (spec >= 0 && (spec & ~allowed) == 0) return spec;
    throw BadValue(name, ": ", spec,
                   allowed == mjSTATE_USER ? " has bits outside mjSTATE_USER"
                                           : " is no state that a simulation has");
  }

  // Ascending, each once; all for None.
  std::vector<int32_t> ReadIds(const py::object& ids) const {
    std::vector<int32_t> selected;
    if (ids.is_none()) {
      for (int32_t sim = 0; sim < nsim_; ++sim) selected.push_back(sim);
      return selected;
    }
    const InputArray input = ReadIntegers(ids, "ids", [] { return std::string("(n,) integers"); });
    const auto* const given = static_cast<const int64_t*>(input.data);
    const auto count = NumElements(input.shape);
    for (int64_t i = 0; i < count; ++i) {
      if (given[i] < 0 || given[i] >= nsim_) {
        throw BadValue("ids must be in [0, ", nsim_, "), got ", given[i]);
      }
      if (i > 0 && given[i] <= given[i - 1]) {
        throw BadValue("ids must be sorted and unique, got ", given[i - 1], " before ", given[i]);
      }
      selected.push_back(static_cast<int32_t>(given[i]));
    }
    return selected;
  }

  Failures Move(const std::vector<int32_t>& ids, const Motion& motion) {
    return Finish(ids, WithoutGil([&] { return batch_->Move(ids, motion, PythonInterrupted); }));
  }

  Failures Apply(const std::vector<int32_t>& ids, const Operation& operation) {
    return Finish(ids,
                  WithoutGil([&] { return batch_->Apply(ids, operation, PythonInterrupted); }));
  }

  Failures Finish(const std::vector<int32_t>& ids, const physics::Outcome& outcome) {
    for (size_t i = 0; i < ids.size(); ++i) {
      status_[ids[i]] = static_cast<int32_t>(outcome.statuses[i]);
    }
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    WarnOfBrokenTrust();
    Failures failures;
    for (const EnvFailure& failure : outcome.failures) {
      failures.append(py::make_tuple(failure.env_id, failure.message));
    }
    return failures;
  }

  const mjData* shared_data_ = nullptr;  // one of those that simulations share, if they do
  const mjModel* model_ = nullptr;
  int nsim_ = 0;
  int32_t* status_ = nullptr;
  std::vector<py::object> kept_, kept_fields_;  // arrays that the batch writes and reads
  std::unique_ptr<Batch> batch_;
};

template <auto Find>
std::optional<size_t> SizeOf(uintptr_t model, const std::string& name) {
  const auto field = Find(*At<const mjModel>(model), name);
  return field ? std::optional(field->bytes) : std::nullopt;
}

void WriteModelField(uintptr_t address, const std::string& name, const py::object& values) {
  mjModel& m = *At<mjModel>(address);
  const auto field = FindOwnField(m, name);
  if (!field) throw BadValue(name, " is no field of MjModel");
  void* const to = field->array != nullptr ? *field->array(m) : field->value(m);
  std::memcpy(to, Bytes(values, name, field->bytes), field->bytes);
}

}  // namespace

void BindPhysicsBatch(py::module_& m) {
  py::class_<PythonBatch>(m, "Batch", "Simulations for pyfastenv.physics.Batch.")
      .def(py::init<const py::KWArgs<py::object>&>())
      .def("bind", &PythonBatch::Bind, py::arg("name"), py::arg("array"),
           "Copies a field of MjData into an array after every call.")
      .def("set_fields", &PythonBatch::SetFields, py::arg("arrays"),
           "Gives every simulation its own values of these fields of MjModel, and of no others.")
      .def("has_sizes_of", &PythonBatch::HasSizesOf, py::arg("model_address"),
           "Whether a model's data and states are as large as the batch's.")
      .def("set_models", &PythonBatch::SetModels, py::arg("addresses"),
           "Runs every simulation on a model of its own; none: on the batch's.")
      .def("step", &PythonBatch::Step, py::arg("ids"), py::arg("nstep"), py::arg("stage"),
           "Steps simulations; returns (simulation, message) of those in which MuJoCo raised.")
      .def("rollout", &PythonBatch::Rollout, "The same with given controls and records.")
      .def("forward", &PythonBatch::Forward, py::arg("ids"), py::arg("stage"),
           "Computes what follows from the states; returns failures as step.")
      .def("reset", &PythonBatch::Reset, py::arg("ids"), py::arg("keyframe"), py::arg("stage"),
           "Resets simulations to keyframes; returns failures as step.")
      .def("jac", &PythonBatch::Jacobians, py::arg("ids"), py::arg("body"), py::arg("point"),
           py::arg("jacp"), py::arg("jacr"), "Computes Jacobians; returns failures as step.")
      .def("ray", &PythonBatch::Rays, "Casts rays; returns failures as step.")
      .def("lane_steps", &PythonBatch::LaneSteps,
           "Steps that lanes were asked for so far, and those of them that they left to mj_step.");
  m.def("data_field_size", &SizeOf<FindDataField>, py::arg("model_address"), py::arg("name"),
        "Bytes of a field of MjData whose size is fixed; None for other names.");
  m.def("model_field_size", &SizeOf<FindOwnField>, py::arg("model_address"), py::arg("name"),
        "Bytes of a field of MjModel that simulations may have their own of; None for other "
        "names.");
  m.def("write_model_field", &WriteModelField, py::arg("model_address"), py::arg("name"),
        py::arg("values"), "Writes such a field, from an array of so many bytes.");
  m.def(
      "active_callback",
      []() -> std::optional<std::string> {
        const char* const name = ActiveCallback();
        return name != nullptr ? std::optional<std::string>(name) : std::nullopt;
      },
      "Name of a callback of MuJoCo's that changes physics and is set; None if none is.");
}

}  // namespace pyfastenv
