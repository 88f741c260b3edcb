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
  HalfCheetahMeta(const Params& params, ModelCache& models)
      : MujocoEnv(params, models, GymVersion::kV5,
                  {.xml_file = "half_cheetah.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = params.Get("reset_noise_scale", 0.1)}),
        torso_(BodyId("torso")) {
    SetObservation(model().nq - 1 + model().nv + 3);
    AddPositionInfo("x_position");
    AddInfo("x_velocity");
    AddInfo("reward_forward");
    AddActionInfo("reward_ctrl");
  }

  void ResetModel(Random& random) override {
    NoisyPositions(random);
    NormalVelocities(random);
  }

  StepResult StepTask(const Action& action, double* info) override {
    const double x_before = qpos()[0];
    Simulate(action);
    const double x_velocity = (qpos()[0] - x_before) / dt();
    const double forward_reward = ForwardReward(x_velocity);
    const double ctrl_cost = ControlCost(0.05, action).value();
    info = PositionInfo(info);
    info[0] = x_velocity;
    info[1] = forward_reward;
    info[2] = -ctrl_cost;
    return {.reward = forward_reward - ctrl_cost};
  }

  double* PositionInfo(double* info) const override {
    *info = qpos()[0];
    return info + 1;
  }

  void Observe(double* obs) const override {
    obs = Append(obs, qpos() + 1, model().nq - 1);
    obs = Append(obs, qvel(), model().nv);
    Append(obs, body_xpos(torso_), 3);
  }

 protected:
  virtual double ForwardReward(double x_velocity) const = 0;

 private:
  const int torso_;
};

class HalfCheetahDir final : public HalfCheetahMeta {
 public:
  HalfCheetahDir(const Params& params, ModelCache& models) : HalfCheetahMeta(params, models) {
    AddTask({.name = "direction", .sampler = TaskField::Sampler::kSign});
  }
  double ForwardReward(double x_velocity) const override { return task()[0] * x_velocity; }
};

class HalfCheetahVel final : public HalfCheetahMeta {
 public:
  HalfCheetahVel(const Params& params, ModelCache& models) : HalfCheetahMeta(params, models) {
    AddTask({.name = "velocity", .low = 0.0, .high = 2.0});
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
