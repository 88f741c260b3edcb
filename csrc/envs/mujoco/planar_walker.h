// What Hopper and Walker2d share: all but the model and what counts as healthy.
#pragma once

#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

class PlanarWalker : public MujocoEnv {
 public:
  StepResult StepTask(const Action& action, InfoRow info) override {
    const double x_before = qpos()[0];
    Simulate(action);
    const double x_velocity = (qpos()[0] - x_before) / dt();
    const bool healthy = IsHealthy();
    const double forward_reward = forward_reward_weight_ * x_velocity;
    // v4 pays the reward of health for the last step too
    const bool paid = healthy || (!v5_ && terminate_when_unhealthy_);
    const double healthy_reward = (paid ? 1.0 : 0.0) * healthy_reward_;
    const double ctrl_cost = ControlCost(ctrl_cost_weight_, action).value();
    info[x_velocity_] = x_velocity;
    if (v5_) {
      info[reward_forward_] = forward_reward;
      info[reward_ctrl_] = -ctrl_cost;
      info[reward_survive_] = healthy_reward;
    }
    return {.reward = forward_reward + healthy_reward - ctrl_cost,
            .terminated = !healthy && terminate_when_unhealthy_};
  }

  void PositionInfo(InfoRow info) const override {
    info[x_position_] = qpos()[0];
    if (v5_) info[z_distance_from_origin_] = qpos()[1] - init_qpos()[1];
  }

  void Observe(double* obs) const override {
    obs = Append(obs, qpos() + skipped_qpos_, model().nq - skipped_qpos_);
    AppendClipped(obs, qvel(), model().nv, -10.0, 10.0);
  }

 protected:
  PlanarWalker(const Params& params, ModelCache& models, GymVersion version, const char* xml_file,
               SpecBuilder& spec)
      : MujocoEnv(spec, params, models, version,
                  {.xml_file = xml_file,
                   .frame_skip = 4,
                   .reset_noise_scale = params.GetScale("reset_noise_scale", 5e-3),
                   .min_nq = 3}),
        v5_(version == GymVersion::kV5),
        forward_reward_weight_(params.GetWeight("forward_reward_weight", 1.0)),
        ctrl_cost_weight_(params.GetWeight("ctrl_cost_weight", 1e-3)),
        healthy_reward_(params.GetWeight("healthy_reward", 1.0)),
        terminate_when_unhealthy_(params.GetBool("terminate_when_unhealthy", true)),
        skipped_qpos_(params.GetBool("exclude_current_positions_from_observation", true) ? 1 : 0) {
    SetObservation(spec, model().nq + model().nv - skipped_qpos_);
    x_position_ = AddPositionInfo(spec, "x_position", version);
    if (v5_) z_distance_from_origin_ = AddPositionInfo(spec, "z_distance_from_origin");
    x_velocity_ = AddInfo(spec, "x_velocity");
    if (v5_) {
      reward_forward_ = AddInfo(spec, "reward_forward");
      reward_ctrl_ = AddActionInfo(spec, "reward_ctrl");
      reward_survive_ = AddInfo(spec, "reward_survive", TypeOf(params, "healthy_reward", version));
    }
  }

  virtual bool IsHealthy() const = 0;

  static bool Within(double x, Params::Range range) { return range.first < x && x < range.second; }
  double height() const { return qpos()[1]; }
  double angle() const { return qpos()[2]; }

 private:
  const bool v5_;
  const double forward_reward_weight_;
  const double ctrl_cost_weight_;
  const double healthy_reward_;
  const bool terminate_when_unhealthy_;
  const int skipped_qpos_;
  InfoSlot x_position_, x_velocity_;
  InfoSlot z_distance_from_origin_, reward_forward_, reward_ctrl_, reward_survive_;  // v5
};

}  // namespace pyfastenv
