// HalfCheetah-v5 and -v4: gymnasium/envs/mujoco/half_cheetah_v{5,4}.py.
#include "envs/mujoco/mujoco_env.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

class HalfCheetah final : public MujocoEnv {
 public:
  HalfCheetah(const Params& params, ModelCache& models, GymVersion version)
      : MujocoEnv(params, models, version,
                  {.xml_file = "half_cheetah.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = params.Get("reset_noise_scale", 0.1)}),
        forward_reward_weight_(params.Get("forward_reward_weight", 1.0)),
        ctrl_cost_weight_(params.Get("ctrl_cost_weight", 0.1)),
        skipped_qpos_(params.GetBool("exclude_current_positions_from_observation", true) ? 1 : 0),
        reset_info_(version == GymVersion::kV5) {
    SetObservation(model().nq + model().nv - skipped_qpos_);
    AddInfo("x_position", reset_info_ ? InfoField::When::kAlways : InfoField::When::kStep);
    AddInfo("x_velocity");
    AddInfo(version == GymVersion::kV5 ? "reward_forward" : "reward_run");
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
    const double forward_reward = forward_reward_weight_ * x_velocity;
    const double ctrl_cost = ControlCost(ctrl_cost_weight_, action).value();
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
    obs = Append(obs, qpos() + skipped_qpos_, model().nq - skipped_qpos_);
    Append(obs, qvel(), model().nv);
  }

 private:
  const double forward_reward_weight_;
  const double ctrl_cost_weight_;
  const int skipped_qpos_;
  const bool reset_info_;
};

}  // namespace

std::unique_ptr<Environment> MakeHalfCheetahV5(const Params& params, ModelCache& models) {
  return std::make_unique<HalfCheetah>(params, models, GymVersion::kV5);
}

std::unique_ptr<Environment> MakeHalfCheetahV4(const Params& params, ModelCache& models) {
  return std::make_unique<HalfCheetah>(params, models, GymVersion::kV4);
}

}  // namespace pyfastenv
