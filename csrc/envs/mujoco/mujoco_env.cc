#include "envs/mujoco/mujoco_env.h"

#include <cmath>
#include <cstdlib>

#include "core/errors.h"
#include "core/thread_clock.h"
#include "lanes/contacts.h"
#include "lanes/sensors.h"
#include "mujoco/model_features.h"

namespace pyfastenv {

using Turn = EngineTurns::Turn;

namespace {

int FrameSkip(const Params& params, GymVersion version, int fallback) {
  if (version == GymVersion::kV4) return fallback;
  constexpr int kMost = 1'000'000;
  return params.GetCount("frame_skip", fallback, kMost);
}

template <class Fields>
std::vector<std::string> Names(const Fields& fields) {
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(field.name);
  return names;
}

void Increase(std::atomic<int64_t>& counter) {
  // one writer: no read-modify-write needed
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

MujocoEnv::MujocoEnv(SpecBuilder& spec, const Params& params, ModelCache& models,
                     GymVersion version, const Robot& robot)
    : Environment(spec),
      workspace_(models.Load(ModelPath(params, models, version, robot)), models.parts()),
      frame_skip_(FrameSkip(params, version, robot.frame_skip)),
      control_every_(robot.control_every > 0 ? std::min(robot.control_every, frame_skip_)
                                             : frame_skip_),
      reset_noise_scale_(robot.reset_noise_scale),
      velocity_noise_(robot.velocity_noise),
      external_forces_(robot.external_forces || robot.reads.Has(Field::cfrc_ext)),
      passive_reset_(robot.passive_reset),
      dt_(model().opt.timestep * frame_skip_),
      init_qpos_(data().qpos, data().qpos + model().nq),
      init_qvel_(data().qvel, data().qvel + model().nv),
      cache_(static_cast<size_t>(robot.cache_size + robot.cache_per_body * model().nbody)),
      num_mocap_(robot.moves_mocap ? static_cast<size_t>(model().nmocap) : 0),
      asked_(static_cast<size_t>(model().nu) + 7 * num_mocap_),
      engine_(models.engine()),
      reads_(robot.reads),
      task_refusal_(robot.refusal),
      drawn_(robot.own_fields),
      poisons_(std::getenv("PYFASTENV_POISON") != nullptr) {
  if (model().nq < robot.min_nq || model().nv < robot.min_nv) {
    throw BadValue(ModelPath(params, models, version, robot),
                   ": expected a model with nq >= ", robot.min_nq, " and nv >= ", robot.min_nv,
                   ", got nq = ", model().nq, " and nv = ", model().nv);
  }
  for (int i = 0; i < model().nu; ++i) {
    // gymnasium's action space is float32
    spec->action_low.push_back(static_cast<float>(model().actuator_ctrlrange[2 * i]));
    spec->action_high.push_back(static_cast<float>(model().actuator_ctrlrange[2 * i + 1]));
  }
  spec->render_fps = std::nearbyint(1.0 / dt_);
  spec->model_path = ModelPath(params, models, version, robot);
  if (engine_ == Engine::kMujoco) {
    refusal_ = "engine='mujoco' was asked for";
    return;
  }
  for (OwnField& field : drawn_) field.offset += workspace_.state_size();
  const std::string& path = spec->model_path;
  const LanePlans& plans = models.Plans(path, workspace_.plain_model(), Names(drawn_));
  trust_ = plans.trust;
  turns_ = EngineTurns(models.choice());
  compared_.resize(static_cast<size_t>(workspace_.state_size()));
  lanes_ = MakeLanes(plans, drawn_, refusal_);
  if (lanes_ != nullptr) {
    group_size_ = lanes_->group_size();
  } else if (engine_ == Engine::kLanes) {
    throw BadValue("engine='lanes': ", refusal_, " in ", path);
  }
}

// Null, and why, if lanes cannot.
std::unique_ptr<PreparedSteps> MujocoEnv::MakeLanes(const LanePlans& plans,
                                                    const std::vector<OwnField>& fields,
                                                    std::string& refusal) const {
  refusal = task_refusal_.empty() ? plans.refusal : task_refusal_;
  // a task that reads tendons, and a model whose tendons lanes do not know
  const bool tendons = reads_.Has(Field::ten_length) || reads_.Has(Field::ten_velocity) ||
                       lanes::SensesTendons(model(), reads_.sensors);
  if (refusal.empty() && tendons && plans.plans[0]->tables().ntendon != model().ntendon) {
    refusal = "lanes do not do lengths of such tendons, which the task reads";
  }
  if (refusal.empty() && external_forces_ && lanes::LacksBodyForces(model())) {
    refusal = "lanes do not do cfrc_ext where spatial tendons pull, and the task reads it";
  }
  const std::string sensor = lanes::UnsupportedSensor(model(), reads_.sensors);
  if (refusal.empty() && !sensor.empty()) {
    refusal = "lanes do not do " + sensor + ", and the task reads sensordata";
  }
  const std::string contacts = reads_.contacts ? lanes::UnsupportedContacts(model()) : "";
  if (refusal.empty() && !contacts.empty()) {
    refusal = "lanes do not do " + contacts + ", and the task reads contacts";
  }
  if (!refusal.empty()) return nullptr;
  std::vector<int> offsets;
  for (const OwnField& field : fields) offsets.push_back(field.offset);
  return std::make_unique<PreparedSteps>(plans, model(), workspace_.state_size(), frame_skip_,
                                         control_every_, num_mocap_, reads_, offsets,
                                         drawn_.size());
}

std::string MujocoEnv::ModelPath(const Params& params, const ModelCache& models, GymVersion version,
                                 const Robot& robot) {
  const bool takes_xml_file = version == GymVersion::kV5 || robot.v4_takes_xml_file;
  return models.Resolve(takes_xml_file ? params.GetString("xml_file", robot.xml_file)
                                       : robot.xml_file);
}

int MujocoEnv::BodyId(const std::string& name) const {
  // not mj_name2id: its hash table counts the cameras that LoadModel leaves out
  for (int body = 0; body < model().nbody; ++body) {
    if (name == model().names + model().name_bodyadr[body]) return body;
  }
  throw BadValue("the model has no body named '", name, "'");
}

RowLayout MujocoEnv::InitialLayout() const {
  return {workspace_.state_size(), static_cast<int>(cache_.size()), spec().task_size()};
}

std::vector<double> MujocoEnv::InitialRow() const {
  const RowLayout layout = InitialLayout();
  std::vector<double> row(static_cast<size_t>(layout.size()));
  std::copy(workspace_.initial_state().begin(), workspace_.initial_state().end(), row.begin());
  double* out = row.data() + layout.task().offset;
  for (const auto& field : spec().tasks) {
    // before the first reset_task: forward, and at rest in the origin, or as near as may be
    const double value =
        field.sampler == TaskField::Sampler::kSign ? 1.0 : std::clamp(0.0, field.low, field.high);
    out = std::fill_n(out, field.size, value);
  }
  return row;
}

RowField MujocoEnv::DescribeField(const std::string& name) const {
  const ModelField field = FindModelField(model(), name);
  return {name, field.shape, workspace_.FieldDefaults(field)};
}

void MujocoEnv::Prepare(const RowLayout& layout) {
  std::vector<ModelField> fields;
  std::vector<OwnField> own = drawn_;
  for (const RowField& field : layout.added()) {
    fields.push_back(FindModelField(model(), field.name));
    own.push_back({field.name, field.offset});
  }
  if (engine_ != Engine::kMujoco) {
    const auto plans =
        FindLanePlans(workspace_.plain_model(), workspace_.whole_model(), Names(own));
    prepared_lanes_ = MakeLanes(*plans, own, prepared_refusal_);
    if (prepared_lanes_ == nullptr && engine_ == Engine::kLanes) {
      throw BadValue("engine='lanes': ", prepared_refusal_,
                     "; engine='auto' steps them by mj_step");
    }
  }
  workspace_.PrepareFields(std::move(fields));
  task_.resize(static_cast<size_t>(layout.task().size));
  task_offset_ = layout.task().offset;
  fields_offset_ = layout.fields().offset;
}

void MujocoEnv::Adopt() noexcept {
  workspace_.AdoptFields();
  if (engine_ == Engine::kMujoco) return;
  lanes_ = std::move(prepared_lanes_);
  ahead_ = nullptr;  // of the lanes that were
  group_size_.store(lanes_ ? lanes_->group_size() : 0, std::memory_order_relaxed);
  const std::lock_guard lock(refusal_mutex_);
  refusal_.swap(prepared_refusal_);
}

// ---- the engine ----

int MujocoEnv::group_size() const { return group_size_.load(std::memory_order_relaxed); }

EngineReport MujocoEnv::engine() const {
  EngineReport report;
  report.lane_steps = lane_steps_.load(std::memory_order_relaxed);
  report.misses = misses_.load(std::memory_order_relaxed);
  report.checks = checks_.load(std::memory_order_relaxed);
  report.differences = differences_.load(std::memory_order_relaxed);
  if (group_size() == 0) {
    const std::lock_guard lock(refusal_mutex_);
    report.reason = refusal_;
  } else {
    report.reason = trust_->broken() ? trust_->difference() : turns_.choice()->reason();
  }
  report.name = group_size() > 0 && report.reason.empty() ? "lanes" : "mujoco";
  return report;
}

void MujocoEnv::PrepareSteps(std::span<ComingStep> steps) noexcept {
  if (group_size() == 0) return;
  lanes_->Clear();
  turn_ = Turn::kMujoco;
  if (steps.empty() || trust_->broken()) return;
  turn_ = turns_.Next();
  if (turn_ == Turn::kMujoco) return;
  const int64_t begin = turns_.timed() ? ThreadNanoseconds() : 0;
  for (const ComingStep& step : steps) ControlAhead(step, step.row, lanes_->Add(step.row));
  const int missed = lanes_->Run(
      [&](size_t i, const double* from, double* to) { ControlAhead(steps[i], from, to); });
  const int64_t ns = turns_.timed() ? ThreadNanoseconds() - begin : 0;
  turns_.CountLanes(lanes_->count(), missed, ns);
  for (size_t i = 0; i < steps.size(); ++i) steps[i].num_rows = lanes_->CountRows(i);
}

void MujocoEnv::Ask(const Action& action, const Situation& from, const Controlled& to) {
  Get(to, asked_.data());
  Control(action, from, asked_.data());
  Put(asked_.data(), to);
}

void MujocoEnv::Get(const Controlled& from, mjtNum* control) const {
  control = std::copy_n(from.ctrl, model().nu, control);
  control = std::copy_n(from.mocap_pos, 3 * num_mocap_, control);
  std::copy_n(from.mocap_quat, 4 * num_mocap_, control);
}

void MujocoEnv::Put(const mjtNum* control, const Controlled& to) const {
  std::copy_n(control, model().nu, to.ctrl);
  std::copy_n(control += model().nu, 3 * num_mocap_, to.mocap_pos);
  std::copy_n(control += 3 * num_mocap_, 4 * num_mocap_, to.mocap_quat);
}

// `controlled`: a state, which gets the control.
void MujocoEnv::ControlAhead(const ComingStep& step, const double* state,
                             double* controlled) noexcept {
  const Situation from = {state, state + 1, state + 1 + model().nq,
                          step.row + workspace_.state_size(), step.row + task_offset_};
  const lanes::RowLayout& at = lanes_->layout();
  try {
    Ask(step.action, from,
        {controlled + at.ctrl, controlled + at.mocap_pos, controlled + at.mocap_quat});
  } catch (...) {
    // whoever takes this step will see the same exception; NaN is nobody's control
    std::fill_n(controlled + at.ctrl, model().nu, std::numeric_limits<double>::quiet_NaN());
  }
}

void MujocoEnv::ControlLoaded(const Action& action) {
  const mjData& d = data();
  Ask(action, {&d.time, d.qpos, d.qvel, cache_.data(), task_.data()}, InData());
}

void MujocoEnv::Simulate(const Action& action) {
  CheckNoCallbacks();
  ControlLoaded(action);
  StepByEither(&action, frame_skip_);
}

void MujocoEnv::SimulateControl(int num_steps) {
  CheckNoCallbacks();
  StepByEither(nullptr, num_steps);
}

// `action`: whose control may be asked for again; null: the one in mjData is all.
void MujocoEnv::StepByEither(const Action* action, int num_steps) {
  const bool prepared = num_steps == frame_skip_ && IsPrepared(action);
  if (prepared && turn_ != Turn::kBoth) {
    TakePrepared();
    Increase(lane_steps_);
    return;
  }
  const PreparedSteps::Step* to_compare = prepared ? ahead_ : nullptr;
  StepByMujoco(action, num_steps);
  if (to_compare != nullptr && IsAsPrepared(*to_compare)) {
    Increase(lane_steps_);
  } else if (group_size() > 0) {
    Increase(misses_);
    // what lanes have prepared and nobody takes was in vain
    if (turn_ == Turn::kBoth && found_ && !prepared) turns_.CountLanes(0, 1, 0);
  }
}

void MujocoEnv::StepByMujoco(const Action* action, int num_steps) {
  LoadWholeState(/*control_is_set=*/true);
  const int64_t begin = turn_ == Turn::kBoth ? ThreadNanoseconds() : 0;
  const int control_every = action != nullptr ? control_every_ : num_steps;
  for (int done = 0; done < num_steps; done += control_every) {
    if (done > 0) ControlLoaded(*action);
    const int count = std::min(control_every, num_steps - done);
    workspace_.Step(count, external_forces_ && done + count == num_steps);
  }
  if (turn_ == Turn::kBoth) turns_.CountMujoco(1, ThreadNanoseconds() - begin);
}

// Whether lanes have prepared the step that mj_step has just done, bit for bit. If not, they are
// not used any more.
bool MujocoEnv::IsAsPrepared(const PreparedSteps::Step& step) {
  Increase(checks_);
  workspace_.Save(compared_.data());
  std::string difference = lanes_->FindDifference(step, model(), data(), compared_.data());
  if (difference.empty()) return true;
  Increase(differences_);
  trust_->Break(std::move(difference));
  return false;
}

bool MujocoEnv::IsPrepared(const Action* action) {
  if (ahead_ == nullptr || taken_) return false;
  const int first = drawn_.empty() ? 0 : drawn_[0].offset - workspace_.state_size();
  if (!lanes_->IsFor(*ahead_, data(), cache_.data() + first)) return false;
  if (is_whole_) {
    workspace_.Save(compared_.data());
    if (!lanes_->BeganWith(*ahead_, compared_)) return false;
  }
  return ahead_->between.empty() || (action != nullptr && HasSameControls(*action));
}

void MujocoEnv::TakePrepared() {
  if (!ahead_->between.empty()) {
    lanes_->CopyControl(ahead_->after.data(), data());
  }
  workspace_.LoadMotion(ahead_->after.data());
  if (is_whole_) workspace_.LoadRest(ahead_->after.data());
  if (lanes_->reads_sensors()) {
    workspace_.Run([this] { lanes_->ReadSensors(*ahead_, model(), data()); });
    workspace_.LoadMotion(ahead_->after.data());
  }
  lanes_->Read(*ahead_, model(), data());
  taken_ = true;
}

// Whether the loaded environment, which may have changed what it remembers since the step was
// prepared, asks for the same controls in the states between.
bool MujocoEnv::HasSameControls(const Action& action) {
  const lanes::RowLayout& at = lanes_->layout();
  const double* before = ahead_->before.data();
  for (const std::vector<double>& state : ahead_->between) {
    const auto mocap = std::copy_n(before + at.ctrl, model().nu, asked_.begin());
    std::copy_n(before + at.mocap_pos, 7 * num_mocap_, mocap);
    const double* time = state.data();
    Control(action, {time, time + 1, time + 1 + model().nq, cache_.data(), task_.data()},
            asked_.data());
    if (!lanes_->HasControl(state, asked_.data())) return false;
    before = time;
  }
  return true;
}

void MujocoEnv::LoadWholeState(bool control_is_set) {
  if (ahead_ == nullptr) return;
  if (!is_whole_) {
    const Controlled set = InData();
    std::vector<double> kept(asked_.size());
    Get(set, kept.data());
    workspace_.LoadRest(taken_ ? ahead_->after.data() : row_);
    if (control_is_set) Put(kept.data(), set);
  }
  ahead_ = nullptr;
}

void MujocoEnv::LoadStateAhead() {
  if (ahead_ == nullptr || is_whole_) return;
  workspace_.LoadRest(row_);
  is_whole_ = true;
}

// ---- rows ----

void MujocoEnv::Load(const double* row) {
  workspace_.SwapFields(row + fields_offset_);
  row_ = row;
  ahead_ = lanes_ ? lanes_->Find(row) : nullptr;
  taken_ = is_whole_ = false;
  found_ = ahead_ != nullptr;
  if (poisons_) workspace_.Poison();
  if (found_) {
    workspace_.LoadMotion(row);
    lanes_->CopyControl(row, data());  // the next one may build on it
  } else {
    workspace_.Load(row);
  }
  std::copy_n(row + workspace_.state_size(), cache_.size(), cache_.data());
  std::copy_n(row + task_offset_, task_.size(), task_.data());
}

void MujocoEnv::Save(double* row) const {
  if (ahead_ == nullptr || is_whole_) {
    workspace_.Save(row);
  } else {
    const double* state = taken_ ? ahead_->after.data() : row_;
    if (state != row) std::copy_n(state, workspace_.state_size(), row);
    workspace_.SaveMotion(row);
  }
  std::copy(cache_.begin(), cache_.end(), row + workspace_.state_size());
}

void MujocoEnv::Reset(Random& random, std::span<const double> /*options*/, InfoRow info) {
  random_ = &random;
  if (poisons_) workspace_.Poison();
  workspace_.Restart();
  ahead_ = nullptr;
  workspace_.SetPassive(passive_reset_);
  ResetModel(random);
  workspace_.Forward();
  UpdateCache();
  PositionInfo(info);
}

StepResult MujocoEnv::Step(const Action& action, Random& random, InfoRow info) {
  random_ = &random;
  if (passive_reset_) workspace_.SetPassive(false);
  StepResult result = StepTask(action, info);
  if (workspace_.Diverged()) {
    // MuJoCo has jumped, or is about to jump, to its default pose: nothing it says of this step is
    // meaningful, so report that pose, no reward, and the end of the episode
    workspace_.ResetData();
    ahead_ = nullptr;
    workspace_.Forward();
    UpdateCache();
    result = {.reward = 0.0, .terminated = true, .diverged = true};
  }
  PositionInfo(info);
  return result;
}

void SetObservation(SpecBuilder& spec, int size) {
  spec->obs_size = size;
  spec->obs_low.assign(static_cast<size_t>(size), -kInfinity);
  spec->obs_high.assign(static_cast<size_t>(size), kInfinity);
}

void MujocoEnv::ResetModel(Random& random) {
  const double scale = reset_noise_scale_;
  for (int i = 0; i < model().nq; ++i) {
    data().qpos[i] = init_qpos_[static_cast<size_t>(i)] + random.Uniform(-scale, scale);
  }
  const bool normal = velocity_noise_ == Robot::Noise::kNormal;
  for (int i = 0; i < model().nv; ++i) {
    data().qvel[i] = init_qvel_[static_cast<size_t>(i)] +
                     (normal ? scale * random.StandardNormal() : random.Uniform(-scale, scale));
  }
}

bool MujocoEnv::IsFinite() const {
  const auto finite = [](double x) { return std::isfinite(x); };
  return std::all_of(qpos(), qpos() + model().nq, finite) &&
         std::all_of(qvel(), qvel() + model().nv, finite);
}

double* MujocoEnv::AppendMotion(double* obs, int skipped_positions) const {
  obs = Append(obs, qpos() + skipped_positions, model().nq - skipped_positions);
  return Append(obs, qvel(), model().nv);
}

}  // namespace pyfastenv
