// HalfCheetah-v5 and -v4: gymnasium/envs/mujoco/half_cheetah_v{5,4}.py.
//
// HalfCheetahDir-v5 and HalfCheetahVel-v5: tasks of Finn et al., Model-Agnostic Meta-Learning
// (2017), section 5.3, on the v5 robot. Reward: d * v - 0.05 * |a|^2 with d = +-1, or
// -|v - v*| - 0.05 * |a|^2 with v* ~ U[0, 2]. Observation: qpos[1:], qvel, position of the torso.
#include <cmath>

#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

namespace {

class Cheetah : public MujocoEnv {
 public:
  StepResult StepTask(const Action& action, InfoRow info) override {
    const double x_before = qpos()[0];
    Simulate(action);
    const double x_velocity = (qpos()[0] - x_before) / dt();
    const double forward_reward = ForwardReward(x_velocity);
    const double ctrl_cost = ControlCost(ctrl_cost_weight_, action).value();
    info[x_velocity_] = x_velocity;
    info[reward_forward_] = forward_reward;
    info[reward_ctrl_] = -ctrl_cost;
    return {.reward = forward_reward - ctrl_cost};
  }

  void PositionInfo(InfoRow info) const override { info[x_position_] = qpos()[0]; }

 protected:
  Cheetah(const Params& params, ModelCache& models, GymVersion version, LaneReads reads,
          double ctrl_cost_weight, SpecBuilder& spec)
      : MujocoEnv(spec, params, models, version,
                  {.xml_file = "half_cheetah.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = params.GetScale("reset_noise_scale", 0.1),
                   .velocity_noise = Robot::Noise::kNormal,
                   .reads = std::move(reads)}),
        ctrl_cost_weight_(ctrl_cost_weight) {
    const bool v5 = version == GymVersion::kV5;
    x_position_ = AddPositionInfo(spec, "x_position", version);
    x_velocity_ = AddInfo(spec, "x_velocity");
    reward_forward_ = AddInfo(spec, v5 ? "reward_forward" : "reward_run");
    reward_ctrl_ = AddActionInfo(spec, "reward_ctrl");
  }

  virtual double ForwardReward(double x_velocity) const = 0;

 private:
  const double ctrl_cost_weight_;
  InfoSlot x_position_, x_velocity_, reward_forward_, reward_ctrl_;
};

class HalfCheetah final : public Cheetah {
 public:
  HalfCheetah(const Params& params, ModelCache& models, GymVersion version, SpecBuilder&& spec = {})
      : Cheetah(params, models, version, {}, params.GetWeight("ctrl_cost_weight", 0.1), spec),
        forward_reward_weight_(params.GetWeight("forward_reward_weight", 1.0)),
        skipped_qpos_(params.GetBool("exclude_current_positions_from_observation", true) ? 1 : 0) {
    SetObservation(spec, model().nq + model().nv - skipped_qpos_);
  }

  double ForwardReward(double x_velocity) const override {
    return forward_reward_weight_ * x_velocity;
  }

  void Observe(double* obs) const override { AppendMotion(obs, skipped_qpos_); }

 private:
  const double forward_reward_weight_;
  const int skipped_qpos_;
};

class HalfCheetahMeta : public Cheetah {
 public:
  HalfCheetahMeta(const Params& params, ModelCache& models, SpecBuilder& spec)
      : Cheetah(params, models, GymVersion::kV5, {.fields = {Field::xpos}}, 0.05, spec),
        torso_(BodyId("torso")) {
    SetObservation(spec, model().nq - 1 + model().nv + 3);
  }

  void Observe(double* obs) const override { Append(AppendMotion(obs, 1), body_xpos(torso_), 3); }

 private:
  const int torso_;
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

extern const EnvFactory kHalfCheetah = Make<HalfCheetah>;
extern const EnvFactory kHalfCheetahDir = Make<HalfCheetahDir>;
extern const EnvFactory kHalfCheetahVel = Make<HalfCheetahVel>;

}  // namespace pyfastenv
