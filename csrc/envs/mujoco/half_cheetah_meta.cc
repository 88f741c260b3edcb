// HalfCheetahDir-v5 and HalfCheetahVel-v5: tasks of Finn et al., Model-Agnostic Meta-Learning
// (2017), section 5.3, on gymnasium's v5 robot.
//
// Reward: d * v - 0.05 * |a|^2 with d = +-1, or -|v - v*| - 0.05 * |a|^2 with v* ~ U[0, 2].
// Observation: qpos[1:], qvel, position of the torso.
#include "envs/mujoco/mujoco_env.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

class HalfCheetahMeta : public MujocoEnv {
 public:
  HalfCheetahMeta(const Params& params, ModelCache& models, SpecBuilder& spec)
      : MujocoEnv(spec, params, models, GymVersion::kV5,
                  {.xml_file = "half_cheetah.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = params.GetScale("reset_noise_scale", 0.1),
                   .reads = {.fields = {Field::xpos}}}),
        torso_(BodyId("torso")) {
    SetObservation(spec, model().nq - 1 + model().nv + 3);
    x_position_ = AddPositionInfo(spec, "x_position");
    x_velocity_ = AddInfo(spec, "x_velocity");
    reward_forward_ = AddInfo(spec, "reward_forward");
    reward_ctrl_ = AddActionInfo(spec, "reward_ctrl");
  }

  void ResetModel(Random& random) override {
    NoisyPositions(random);
    NormalVelocities(random);
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    const double x_before = qpos()[0];
    Simulate(action);
    const double x_velocity = (qpos()[0] - x_before) / dt();
    const double forward_reward = ForwardReward(x_velocity);
    const double ctrl_cost = ControlCost(0.05, action).value();
    info[x_velocity_] = x_velocity;
    info[reward_forward_] = forward_reward;
    info[reward_ctrl_] = -ctrl_cost;
    return {.reward = forward_reward - ctrl_cost};
  }

  void PositionInfo(InfoRow info) const override { info[x_position_] = qpos()[0]; }

  void Observe(double* obs) const override {
    obs = Append(obs, qpos() + 1, model().nq - 1);
    obs = Append(obs, qvel(), model().nv);
    Append(obs, body_xpos(torso_), 3);
  }

 protected:
  virtual double ForwardReward(double x_velocity) const = 0;

 private:
  const int torso_;
  InfoSlot x_position_, x_velocity_, reward_forward_, reward_ctrl_;
};

class HalfCheetahDir final : public HalfCheetahMeta {
 public:
  HalfCheetahDir(const Params& params, ModelCache& models, SpecBuilder&& spec = {})
      : HalfCheetahMeta(params, models, spec) {
    spec->tasks.push_back({.name = "direction", .sampler = TaskField::Sampler::kSign});
  }
  double ForwardReward(double x_velocity) const override { return task()[0] * x_velocity; }
};

class HalfCheetahVel final : public HalfCheetahMeta {
 public:
  HalfCheetahVel(const Params& params, ModelCache& models, SpecBuilder&& spec = {})
      : HalfCheetahMeta(params, models, spec) {
    spec->tasks.push_back({.name = "velocity", .low = 0.0, .high = 2.0});
  }
  double ForwardReward(double x_velocity) const override {
    return -std::abs(x_velocity - task()[0]);
  }
};

}  // namespace

std::unique_ptr<Environment> MakeHalfCheetahDirV5(const Params& params, ModelCache& models) {
  return std::make_unique<HalfCheetahDir>(params, models);
}

std::unique_ptr<Environment> MakeHalfCheetahVelV5(const Params& params, ModelCache& models) {
  return std::make_unique<HalfCheetahVel>(params, models);
}

}  // namespace pyfastenv
