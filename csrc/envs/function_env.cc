#include "envs/function_env.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/errors.h"
#include "envs/task_reads.h"
#include "mujoco/model_features.h"

namespace pyfastenv {

namespace {

std::string ModelKey(const TaskDescription& task) { return "task/" + task.name; }

std::vector<double> AsDoubles(const Action& action) {
  if (action.dtype() == DType::kInt64) return {static_cast<double>(action.index())};
  std::vector<double> values(static_cast<size_t>(action.size()));
  action.CopyTo(values.data());
  return values;
}

int CacheSize(const TaskDescription& task) {
  int size = task.memory_size;
  for (const FieldDraw& draw : task.draws) size += FindModelField(*task.model, draw.field).size();
  for (const std::string& name : task.own_narrow) size += SizeInRow(NarrowField(*task.model, name));
  return size;
}

// Lanes refuse narrow ones.
std::vector<FieldPlace> LaneFields(const TaskDescription& task) {
  std::vector<FieldPlace> fields = DrawnFields(task);
  fields.resize(task.draws.size());
  return fields;
}

std::string LaneRefusal(const TaskDescription& task) {
  if (!task.own_narrow.empty()) {
    return "lanes do not do per-environment " + task.own_narrow.front();
  }
  return FindTaskReads(task).refusal;
}

}  // namespace

// Drawn numbers stand behind the task's memory.
std::vector<FieldPlace> DrawnFields(const TaskDescription& task) {
  std::vector<FieldPlace> fields;
  int offset = task.memory_size;
  for (const FieldDraw& draw : task.draws) {
    fields.push_back({draw.field, offset});
    offset += FindModelField(*task.model, draw.field).size();
  }
  for (const std::string& name : task.own_narrow) {
    fields.push_back({name, offset});
    offset += SizeInRow(NarrowField(*task.model, name));
  }
  return fields;
}

FunctionEnv::FunctionEnv(std::shared_ptr<const TaskDescription> task, ModelCache& models,
                         SpecBuilder&& spec)
    : MujocoEnv(spec, Params(), models, GymVersion::kV5,
                {.xml_file = ModelKey(*task).c_str(),
                 .frame_skip = task->frame_skip,
                 .reads = FindTaskReads(*task).reads,
                 .external_forces = task->external_forces,
                 .passive_reset = task->passive_reset,
                 .moves_mocap = task->moves_mocap,
                 .control_every = task->control_every,
                 .refusal = LaneRefusal(*task),
                 .cache_size = CacheSize(*task),
                 .own_fields = LaneFields(*task),
                 .min_nq = 0,
                 .min_nv = 0}),
      task_(std::move(task)) {
  SetObservation(spec, task_->obs_size);
  spec->num_actions = task_->num_actions;
  spec->action_low = task_->action_low;
  spec->action_high = task_->action_high;
  spec->action_dtype = task_->action_dtype;
  spec->infos = task_->infos;
  spec->tasks = task_->commands;
  info_.resize(static_cast<size_t>(spec->info_size()));
  action_.resize(static_cast<size_t>(spec->action_size()));
  frame_.model = &model();
  frame_.action = action_.data();
  frame_.info = info_.data();
  frame_.memory = cache();
  frame_.params = task_->params.data();
  frame_.env = this;
  PointFields();
  control_action_.resize(action_.size());
  control_frame_ = frame_;
  control_frame_.action = control_action_.data();
  if (task_->control != nullptr) {
    control_data_ = std::make_unique<mjData>(data());
    control_frame_.data = control_data_.get();
  }
}

void FunctionEnv::PointFields() {
  double* values = cache() + task_->memory_size;
  for (const FieldDraw& draw : task_->draws) {
    drawn_.push_back(FindModelField(model(), draw.field));
    workspace().PointField(drawn_.back(), values);
    values += drawn_.back().size();
  }
  for (const std::string& name : task_->own_narrow) {
    workspace().PointNarrow(name, values);
    values += SizeInRow(NarrowField(model(), name));
  }
}

void FunctionEnv::ForgetEpisodes() { std::fill_n(cache(), task_->memory_size, 0.0); }

void FunctionEnv::ForgetEpisode() {
  std::fill_n(cache(), task_->memory_size - task_->lasting_size, 0.0);
  std::fill(info_.begin(), info_.end(), 0.0);
}

void FunctionEnv::ResetModel(Random& random) {
  stepping_ = false;
  given_ = nullptr;
  ForgetEpisode();
  DrawFields(random);
  frame_.random = &random;
  frame_.fresh = 0;
  Call(task_->reset, "reset", frame_);
}

void FunctionEnv::DrawFields(Random& random) {
  double* out = cache() + task_->memory_size;
  for (size_t i = 0; i < drawn_.size(); ++i) {
    const FieldDraw& draw = task_->draws[i];
    const mjtNum* base = (*task_->model).*drawn_[i].array;
    const bool own = draw.kind == FieldDraw::Kind::kOwn;
    double number = draw.together ? random.Uniform(draw.low, draw.high) : 0.0;
    for (int k = 0; k < drawn_[i].size(); ++k) {
      if (!draw.together && !own) number = random.Uniform(draw.low, draw.high);
      switch (draw.kind) {
        case FieldDraw::Kind::kScale:
          *out++ = base[k] * number;
          break;
        case FieldDraw::Kind::kShift:
          *out++ = base[k] + number;
          break;
        case FieldDraw::Kind::kUniform:
          *out++ = number;
          break;
        case FieldDraw::Kind::kOwn:
          *out++ = base[k];
          break;
      }
    }
  }
  for (const std::string& name : task_->own_narrow) {
    const std::span<const std::byte> base = NarrowField(*task_->model, name);
    std::memcpy(out, base.data(), base.size());
    out += SizeInRow(base);
  }
}

std::string FunctionEnv::WrongType() const {
  if (task_->own_narrow.empty()) return {};
  const int *types = model().geom_type, *base = task_->model->geom_type;
  for (int g = 0; g < model().ngeom; ++g) {
    if (types[g] == base[g] || (types[g] >= mjGEOM_SPHERE && types[g] <= mjGEOM_BOX)) continue;
    return Join("self.model.geom_type[", g, "]: expected a kind from 2 (sphere) to 6 (box), got ",
                types[g]);
  }
  return {};
}

RowField FunctionEnv::DescribeField(const std::string& name) const {
  for (const FieldDraw& draw : task_->draws) {
    if (draw.field != name) continue;
    if (draw.kind == FieldDraw::Kind::kOwn) {
      throw std::invalid_argument("model field '" + name + "' is written by the task itself");
    }
    throw std::invalid_argument("model field '" + name +
                                "' is drawn by the task: make it with randomise=False to set it");
  }
  return MujocoEnv::DescribeField(name);
}

StepResult FunctionEnv::StepTask(const Action& action, InfoRow /*info*/) {
  stepping_ = true;
  std::fill(info_.begin(), info_.end(), 0.0);
  frame_.fresh = 0;
  given_ = &action;
  try {
    Convert(action, action_.data());
    frame_.random = &random();
    Call(task_->step, "step", frame_);
    if (!std::isfinite(frame_.reward) && !workspace().Diverged()) {
      Fail({"step", {}, {}}, ": the reward is not finite");
    }
  } catch (...) {
    given_ = nullptr;
    // numbers that are none any more make functions stumble: the physics is to blame
    if (workspace().broken() || !workspace().Diverged()) throw;
  }
  given_ = nullptr;
  return {.reward = frame_.reward, .terminated = frame_.terminated != 0};
}

// What a reset or step has written, or zeros if it diverged.
void FunctionEnv::PositionInfo(InfoRow info) const {
  const InfoSlot all{0, static_cast<int>(info_.size())};
  std::copy(info_.begin(), info_.end(), info.vector(all).begin());
}

// After a step this is only called if it diverged; mj_forward has run.
void FunctionEnv::UpdateCache() {
  frame_.fresh = kFreshForward | kFreshBodyForces | kFreshWhole;
  if (stepping_) ForgetEpisode();
}

void FunctionEnv::Observe(double* obs) const {
  // this object is the frame's scratch too, and one thread's at a time
  auto* self = const_cast<FunctionEnv*>(this);
  std::fill_n(obs, spec().obs_size, 0.0);
  self->frame_.obs = obs;
  self->frame_.random = nullptr;
  self->Call(task_->observation, "observation", self->frame_);
}

// In the type that the task's functions read.
void FunctionEnv::Convert(const Action& action, double* out) const {
  if (task_->num_actions > 0) {
    *reinterpret_cast<int64_t*>(out) = action.index();
    return;
  }
  action.CopyTo(out);
  if (task_->action_dtype != DType::kFloat32) return;
  for (int i = 0; i < action.size(); ++i) {  // in place: what is overwritten has been read
    const auto narrow = static_cast<float>(out[i]);
    std::memcpy(reinterpret_cast<char*>(out) + i * static_cast<ptrdiff_t>(sizeof(float)), &narrow,
                sizeof(float));
  }
}

void FunctionEnv::Control(const Action& action, const Situation& from, mjtNum* ctrl) {
  Convert(action, control_action_.data());
  if (task_->control == nullptr) {
    const Action converted(control_action_.data(), task_->action_dtype, action.size());
    if (task_->num_actions == 0 && action.size() == model().nu) converted.CopyTo(ctrl);
    return;
  }
  control_data_->time = *from.time;
  control_data_->qpos = const_cast<mjtNum*>(from.qpos);
  control_data_->qvel = const_cast<mjtNum*>(from.qvel);
  control_data_->ctrl = ctrl;
  control_frame_.memory = const_cast<double*>(from.cache);
  control_frame_.command = from.task;
  Call(task_->control, "control", control_frame_);
}

void FunctionEnv::Call(TaskFunction function, const char* name, TaskFrame& frame) {
  if (&frame == &frame_) {
    // where these stand may have changed with the last Load
    frame.data = &data();
    frame.command = task();
  }
  int32_t result = 0;
  void* exception = nullptr;
  const int32_t status = function(&result, &exception, &frame);
  if (failure_) {
    try {
      std::rethrow_exception(std::exchange(failure_, nullptr));
    } catch (const FunctionError&) {
      throw;
    } catch (const std::exception& error) {
      // not to be repeated: MuJoCo's Python bindings let the process end for errors of the engine
      Fail({name, task_->encode_exception(exception), {}, /*repeatable=*/false},
           std::string(": ") + error.what());
    }
  }
  if (status != 0) Fail({name, task_->encode_exception(exception), {}}, " raised an exception");
  if (const std::string wrong = WrongType(); !wrong.empty()) Fail({name, {}, {}}, ": " + wrong);
}

void FunctionEnv::Fail(FunctionFailure failure, const std::string& what) {
  given_ = nullptr;
  if (stepping_) {  // an observation after a step too
    const DType dtype = task_->num_actions > 0 ? DType::kInt64 : task_->action_dtype;
    failure.action = AsDoubles(Action(action_.data(), dtype, spec().action_size()));
  }
  const std::string message = task_->name + "." + failure.function + what;
  throw FunctionError(message, std::make_shared<FunctionFailure>(std::move(failure)));
}

void FunctionEnv::RefuseInControl(const TaskFrame& frame) const {
  if (&frame == &frame_) return;
  throw std::runtime_error("control may run no physics: it is asked ahead of time");
}

// After the engine has run: these are this environment's. What a reset has zeroed stays its own.
void FunctionEnv::SetFresh(int64_t bits) {
  frame_.fresh |= bits;
  if (!stepping_) frame_.fresh |= kFreshBodyForces;
}

int32_t FunctionEnv::Simulate(const TaskFrame& frame, int64_t num_steps) noexcept {
  return Guard([&] {
    RefuseInControl(frame);
    if (given_ == nullptr) throw std::runtime_error("self.simulate belongs into step");
    if (num_steps > 0) {
      SimulateControl(static_cast<int>(num_steps));
    } else {
      MujocoEnv::Simulate(*given_);
    }
    frame_.fresh = kFreshForward | kFreshBodyForces;
    if (!task_->up_to_date) return;
    if (!IsRefreshed()) {
      LoadWholeState(/*control_is_set=*/true);
      workspace().Run([&] { mj_step1(&model(), &data()); });
    }
    // mj_step1 finds contacts anew and leaves their rows without forces
    frame_.fresh &= ~kFreshRowForces;
  });
}

int32_t FunctionEnv::Forward(const TaskFrame& frame) noexcept {
  return Guard([&] {
    RefuseInControl(frame);
    LoadWholeState(/*control_is_set=*/frame_.fresh != 0);
    workspace().Forward();
    SetFresh(kFreshForward | kFreshWhole);
  });
}

int32_t FunctionEnv::AdvanceBy(const TaskFrame& frame, Advance what, int64_t num_steps) noexcept {
  return Guard([&] {
    RefuseInControl(frame);
    if (num_steps <= 0) return;
    LoadWholeState(/*control_is_set=*/frame_.fresh != 0);
    CheckNoCallbacks();
    workspace().Run([&] {
      switch (what) {
        case Advance::kStep1:
          mj_step1(&model(), &data());
          break;
        case Advance::kStep2:
          mj_step2(&model(), &data());
          break;
        case Advance::kStep:
          for (int64_t i = 0; i < num_steps; ++i) mj_step(&model(), &data());
          break;
      }
    });
    switch (what) {
      case Advance::kStep1:
        frame_.fresh &= ~kFreshRowForces;
        SetFresh(kFreshPlaces | kFreshWhole);
        break;
      case Advance::kStep2:
        SetFresh(kFreshAccelerations | kFreshRowForces);
        break;
      case Advance::kStep:
        SetFresh(kFreshForward | kFreshWhole);
        break;
    }
  });
}

int32_t FunctionEnv::LoadState(const TaskFrame& frame) noexcept {
  return Guard([&] {
    if (&frame == &control_frame_) {
      throw std::runtime_error("control may read time, qpos and qvel of data, and nothing else");
    }
    if (frame.fresh == 0) {
      LoadStateAhead();
    } else {
      LoadWholeState(/*control_is_set=*/true);
    }
  });
}

std::unique_ptr<Environment> MakeFunctionEnv(std::shared_ptr<const TaskDescription> task,
                                             ModelCache& models) {
  models.Add(ModelKey(*task), task->model);
  return std::make_unique<FunctionEnv>(std::move(task), models);
}

}  // namespace pyfastenv
