// Hopper-v5 and -v4: gymnasium/envs/mujoco/hopper_v{5,4}.py.
#include <limits>

#include "envs/mujoco/mujoco_env.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Hopper final : public MujocoEnv {
 public:
  Hopper(const Params& params, ModelCache& models, GymVersion version)
      : MujocoEnv(params, models, version,
                  {.xml_file = "hopper.xml",
                   .frame_skip = 4,
                   .reset_noise_scale = params.Get("reset_noise_scale", 5e-3),
                   .min_nq = 3,
                   .min_nv = 1}),
        v5_(version == GymVersion::kV5),
        forward_reward_weight_(params.Get("forward_reward_weight", 1.0)),
        ctrl_cost_weight_(params.Get("ctrl_cost_weight", 1e-3)),
        healthy_reward_(params.Get("healthy_reward", 1.0)),
        terminate_when_unhealthy_(params.GetBool("terminate_when_unhealthy", true)),
        healthy_state_range_(params.GetRange("healthy_state_range", {-100.0, 100.0})),
        healthy_z_range_(params.GetRange("healthy_z_range", {0.7, kInfinity})),
        healthy_angle_range_(params.GetRange("healthy_angle_range", {-0.2, 0.2})),
        skipped_qpos_(params.GetBool("exclude_current_positions_from_observation", true) ? 1 : 0) {
    SetObservation(model().nq + model().nv - skipped_qpos_);
    if (v5_) {
      AddPositionInfo("x_position");
      AddPositionInfo("z_distance_from_origin");
      AddInfo("x_velocity");
      AddInfo("reward_forward");
      AddActionInfo("reward_ctrl");
      AddInfo("reward_survive");
    } else {
      AddInfo("x_position");
      AddInfo("x_velocity");
    }
  }

  void ResetModel(Random& random) override {
    NoisyPositions(random);
    UniformVelocities(random);
  }

  StepResult StepTask(const Action& action, double* info) override {
    const double x_before = qpos()[0];
    Simulate(action);
    const double x_velocity = (qpos()[0] - x_before) / dt();
    const bool healthy = IsHealthy();
    const double forward_reward = forward_reward_weight_ * x_velocity;
    // v4 pays the reward of health for the last step too
    const bool paid = healthy || (!v5_ && terminate_when_unhealthy_);
    const double healthy_reward = (paid ? 1.0 : 0.0) * healthy_reward_;
    const double ctrl_cost = ControlCost(ctrl_cost_weight_, action).value();
    if (v5_) {
      info = PositionInfo(info);
      info[0] = x_velocity;
      info[1] = forward_reward;
      info[2] = -ctrl_cost;
      info[3] = healthy_reward;
    } else {
      info[0] = qpos()[0];
      info[1] = x_velocity;
    }
    return {.reward = forward_reward + healthy_reward - ctrl_cost,
            .terminated = !healthy && terminate_when_unhealthy_};
  }

  double* PositionInfo(double* info) const override {
    if (!v5_) return info;
    info[0] = qpos()[0];
    info[1] = qpos()[1] - init_qpos()[1];
    return info + 2;
  }

  void Observe(double* obs) const override {
    obs = Append(obs, qpos() + skipped_qpos_, model().nq - skipped_qpos_);
    AppendClipped(obs, qvel(), model().nv, -10.0, 10.0);
  }

 private:
  bool IsHealthy() const {
    const auto within = [](double x, Params::Range range) {
      return range.first < x && x < range.second;
    };
    const auto healthy = [&](double x) { return within(x, healthy_state_range_); };
    return std::all_of(qpos() + 2, qpos() + model().nq, healthy) &&
           std::all_of(qvel(), qvel() + model().nv, healthy) &&
           within(qpos()[1], healthy_z_range_) && within(qpos()[2], healthy_angle_range_);
  }

  const bool v5_;
  const double forward_reward_weight_;
  const double ctrl_cost_weight_;
  const double healthy_reward_;
  const bool terminate_when_unhealthy_;
  const Params::Range healthy_state_range_;
  const Params::Range healthy_z_range_;
  const Params::Range healthy_angle_range_;
  const int skipped_qpos_;
};

}  // namespace

std::unique_ptr<Environment> MakeHopperV5(const Params& params, ModelCache& models) {
  return std::make_unique<Hopper>(params, models, GymVersion::kV5);
}

std::unique_ptr<Environment> MakeHopperV4(const Params& params, ModelCache& models) {
  return std::make_unique<Hopper>(params, models, GymVersion::kV4);
}

}  // namespace pyfastenv
