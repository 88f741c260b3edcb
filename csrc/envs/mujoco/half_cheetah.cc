// HalfCheetah-v5 and -v4: gymnasium/envs/mujoco/half_cheetah_v{5,4}.py.
#include "envs/mujoco/mujoco_env.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

class HalfCheetah final : public MujocoEnv {
 public:
  HalfCheetah(const Params& params, ModelCache& models, GymVersion version, SpecBuilder&& spec = {})
      : MujocoEnv(spec, params, models, version,
                  {.xml_file = "half_cheetah.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = params.GetScale("reset_noise_scale", 0.1)}),
        forward_reward_weight_(params.GetWeight("forward_reward_weight", 1.0)),
        ctrl_cost_weight_(params.GetWeight("ctrl_cost_weight", 0.1)),
        skipped_qpos_(params.GetBool("exclude_current_positions_from_observation", true) ? 1 : 0) {
    const bool v5 = version == GymVersion::kV5;
    SetObservation(spec, model().nq + model().nv - skipped_qpos_);
    x_position_ = AddPositionInfo(spec, "x_position", version);
    x_velocity_ = AddInfo(spec, "x_velocity");
    reward_forward_ = AddInfo(spec, v5 ? "reward_forward" : "reward_run");
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
    const double forward_reward = forward_reward_weight_ * x_velocity;
    const double ctrl_cost = ControlCost(ctrl_cost_weight_, action).value();
    info[x_velocity_] = x_velocity;
    info[reward_forward_] = forward_reward;
    info[reward_ctrl_] = -ctrl_cost;
    return {.reward = forward_reward - ctrl_cost};
  }

  void PositionInfo(InfoRow info) const override { info[x_position_] = qpos()[0]; }

  void Observe(double* obs) const override {
    obs = Append(obs, qpos() + skipped_qpos_, model().nq - skipped_qpos_);
    Append(obs, qvel(), model().nv);
  }

 private:
  const double forward_reward_weight_;
  const double ctrl_cost_weight_;
  const int skipped_qpos_;
  InfoSlot x_position_, x_velocity_, reward_forward_, reward_ctrl_;
};

}  // namespace

std::unique_ptr<Environment> MakeHalfCheetahV5(const Params& params, ModelCache& models) {
  return std::make_unique<HalfCheetah>(params, models, GymVersion::kV5);
}

std::unique_ptr<Environment> MakeHalfCheetahV4(const Params& params, ModelCache& models) {
  return std::make_unique<HalfCheetah>(params, models, GymVersion::kV4);
}

}  // namespace pyfastenv
