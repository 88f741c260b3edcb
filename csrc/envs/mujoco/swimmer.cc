// Swimmer-v5 and -v4: gymnasium/envs/mujoco/swimmer_v{5,4}.py.
#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

namespace {

class Swimmer final : public MujocoEnv {
 public:
  Swimmer(const Params& params, ModelCache& models, GymVersion version, SpecBuilder&& spec = {})
      : MujocoEnv(spec, params, models, version,
                  {.xml_file = "swimmer.xml",
                   .frame_skip = 4,
                   .reset_noise_scale = params.GetScale("reset_noise_scale", 0.1),
                   .min_nq = 2,
                   .min_nv = 1}),
        v5_(version == GymVersion::kV5),
        forward_reward_weight_(params.GetWeight("forward_reward_weight", 1.0)),
        ctrl_cost_weight_(params.GetWeight("ctrl_cost_weight", 1e-4)),
        skipped_qpos_(params.GetBool("exclude_current_positions_from_observation", true) ? 2 : 0) {
    SetObservation(spec, model().nq + model().nv - skipped_qpos_);
    x_position_ = AddPositionInfo(spec, "x_position", version);
    y_position_ = AddPositionInfo(spec, "y_position", version);
    distance_from_origin_ = AddPositionInfo(spec, "distance_from_origin", version);
    x_velocity_ = AddInfo(spec, "x_velocity");
    y_velocity_ = AddInfo(spec, "y_velocity");
    reward_forward_ = AddInfo(spec, v5_ ? "reward_forward" : "reward_fwd");
    reward_ctrl_ = AddActionInfo(spec, "reward_ctrl");
    if (!v5_) forward_reward_ = AddInfo(spec, "forward_reward");
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    const double x_before = qpos()[0];
    const double y_before = qpos()[1];
    Simulate(action);
    const double x_velocity = (qpos()[0] - x_before) / dt();
    const double y_velocity = (qpos()[1] - y_before) / dt();
    const double forward_reward = forward_reward_weight_ * x_velocity;
    const double ctrl_cost = ControlCost(ctrl_cost_weight_, action).value();
    info[x_velocity_] = x_velocity;
    info[y_velocity_] = y_velocity;
    info[reward_forward_] = forward_reward;
    info[reward_ctrl_] = -ctrl_cost;
    if (!v5_) info[forward_reward_] = forward_reward;
    return {.reward = forward_reward - ctrl_cost};
  }

  void PositionInfo(InfoRow info) const override {
    info[x_position_] = qpos()[0];
    info[y_position_] = qpos()[1];
    info[distance_from_origin_] = npy::Norm(qpos(), 2);
  }

  void Observe(double* obs) const override { AppendMotion(obs, skipped_qpos_); }

 private:
  const bool v5_;
  const double forward_reward_weight_;
  const double ctrl_cost_weight_;
  const int skipped_qpos_;
  InfoSlot x_position_, y_position_, distance_from_origin_, x_velocity_, y_velocity_;
  InfoSlot reward_forward_, reward_ctrl_;
  InfoSlot forward_reward_;  // v4
};

}  // namespace

extern const EnvFactory kSwimmer = Make<Swimmer>;

}  // namespace pyfastenv
