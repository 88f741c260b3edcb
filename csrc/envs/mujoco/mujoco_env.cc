#include "envs/mujoco/mujoco_env.h"

#include <cmath>
#include <limits>

#include "core/errors.h"

namespace pyfastenv {

namespace {

int FrameSkip(const Params& params, GymVersion version, int fallback) {
  if (version == GymVersion::kV4) return fallback;
  constexpr int kMost = 1'000'000;
  return params.GetCount("frame_skip", fallback, kMost);
}

}  // namespace

MujocoEnv::MujocoEnv(SpecBuilder& spec, const Params& params, ModelCache& models,
                     GymVersion version, const Robot& robot)
    : Environment(spec),
      workspace_(models.Load(ModelPath(params, models, version, robot)), models.parts()),
      frame_skip_(FrameSkip(params, version, robot.frame_skip)),
      reset_noise_scale_(robot.reset_noise_scale),
      external_forces_(robot.external_forces),
      dt_(model().opt.timestep * frame_skip_),
      init_qpos_(data().qpos, data().qpos + model().nq),
      init_qvel_(data().qvel, data().qvel + model().nv),
      cache_(static_cast<size_t>(robot.cache_size)) {
  if (model().nq < robot.min_nq || model().nv < robot.min_nv) {
    throw UsageError(UsageError::Code::kValue,
                     ModelPath(params, models, version, robot) +
                         ": expected a model with nq >= " + std::to_string(robot.min_nq) +
                         " and nv >= " + std::to_string(robot.min_nv) + ", got nq = " +
                         std::to_string(model().nq) + " and nv = " + std::to_string(model().nv));
  }
  for (int i = 0; i < model().nu; ++i) {
    // gymnasium's action space is float32
    spec->action_low.push_back(static_cast<float>(model().actuator_ctrlrange[2 * i]));
    spec->action_high.push_back(static_cast<float>(model().actuator_ctrlrange[2 * i + 1]));
  }
  spec->render_fps = std::nearbyint(1.0 / dt_);
  spec->model_path = ModelPath(params, models, version, robot);
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
  throw UsageError(UsageError::Code::kValue, "the model has no body named '" + name + "'");
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
    // before the first reset_task: forward, and at rest in the origin
    const double value = field.sampler == TaskField::Sampler::kSign ? 1.0 : 0.0;
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
  for (const RowField& field : layout.added()) {
    fields.push_back(FindModelField(model(), field.name));
  }
  workspace_.PrepareFields(std::move(fields));
  task_.resize(static_cast<size_t>(layout.task().size));
  task_offset_ = layout.task().offset;
  fields_offset_ = layout.fields().offset;
}

void MujocoEnv::Adopt() noexcept { workspace_.AdoptFields(); }

void MujocoEnv::Load(const double* row) {
  workspace_.SwapFields(row + fields_offset_);
  workspace_.Load(row);
  std::copy_n(row + workspace_.state_size(), cache_.size(), cache_.data());
  std::copy_n(row + task_offset_, task_.size(), task_.data());
}

void MujocoEnv::Save(double* row) const {
  workspace_.Save(row);
  std::copy(cache_.begin(), cache_.end(), row + workspace_.state_size());
}

void MujocoEnv::Reset(Random& random, std::span<const double> /*options*/, InfoRow info) {
  workspace_.Restart();
  ResetModel(random);
  workspace_.Forward();
  UpdateCache();
  PositionInfo(info);
}

StepResult MujocoEnv::Step(const Action& action, InfoRow info) {
  StepResult result = StepTask(action, info);
  if (workspace_.Diverged()) {
    // MuJoCo has jumped, or is about to jump, to its default pose: nothing it says of this step is
    // meaningful, so report that pose, no reward, and the end of the episode
    workspace_.ResetData();
    workspace_.Forward();
    UpdateCache();
    result = {.reward = 0.0, .terminated = true, .diverged = true};
  }
  PositionInfo(info);
  return result;
}

void SetObservation(SpecBuilder& spec, int size) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  spec->obs_size = size;
  spec->obs_low.assign(static_cast<size_t>(size), -kInfinity);
  spec->obs_high.assign(static_cast<size_t>(size), kInfinity);
}

void MujocoEnv::Simulate(const Action& action) {
  action.CopyTo(data().ctrl);
  workspace_.Step(frame_skip_, external_forces_);
}

void MujocoEnv::NoisyPositions(Random& random) {
  for (int i = 0; i < model().nq; ++i) {
    data().qpos[i] = init_qpos_[static_cast<size_t>(i)] +
                     random.Uniform(-reset_noise_scale_, reset_noise_scale_);
  }
}

void MujocoEnv::UniformVelocities(Random& random) {
  for (int i = 0; i < model().nv; ++i) {
    data().qvel[i] = init_qvel_[static_cast<size_t>(i)] +
                     random.Uniform(-reset_noise_scale_, reset_noise_scale_);
  }
}

void MujocoEnv::NormalVelocities(Random& random) {
  for (int i = 0; i < model().nv; ++i) {
    data().qvel[i] =
        init_qvel_[static_cast<size_t>(i)] + reset_noise_scale_ * random.StandardNormal();
  }
}

}  // namespace pyfastenv
