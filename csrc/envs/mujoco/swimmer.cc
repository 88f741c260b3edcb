// Swimmer-v5 and -v4: gymnasium/envs/mujoco/swimmer_v{5,4}.py.
#include "envs/mujoco/mujoco_env.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

class Swimmer final : public MujocoEnv {
 public:
  Swimmer(const Params& params, ModelCache& models, GymVersion version)
      : MujocoEnv(params, models, version,
                  {.xml_file = "swimmer.xml",
                   .frame_skip = 4,
                   .reset_noise_scale = params.Get("reset_noise_scale", 0.1),
                   .min_nq = 2,
                   .min_nv = 1}),
        v5_(version == GymVersion::kV5),
        forward_reward_weight_(params.Get("forward_reward_weight", 1.0)),
        ctrl_cost_weight_(params.Get("ctrl_cost_weight", 1e-4)),
        skipped_qpos_(params.GetBool("exclude_current_positions_from_observation", true) ? 2 : 0) {
    SetObservation(model().nq + model().nv - skipped_qpos_);
    const auto when = v5_ ? InfoField::When::kAlways : InfoField::When::kStep;
    for (const char* name : {"x_position", "y_position", "distance_from_origin"}) {
      AddInfo(name, when);
    }
    AddInfo("x_velocity");
    AddInfo("y_velocity");
    AddInfo(v5_ ? "reward_forward" : "reward_fwd");
    AddActionInfo("reward_ctrl");
    if (!v5_) AddInfo("forward_reward");
  }

  void ResetModel(Random& random) override {
    NoisyPositions(random);
    UniformVelocities(random);
  }

  StepResult StepTask(const Action& action, double* info) override {
    const double x_before = qpos()[0];
    const double y_before = qpos()[1];
    Simulate(action);
    const double x_velocity = (qpos()[0] - x_before) / dt();
    const double y_velocity = (qpos()[1] - y_before) / dt();
    const double forward_reward = forward_reward_weight_ * x_velocity;
    const double ctrl_cost = ControlCost(ctrl_cost_weight_, action).value();
    info = PositionInfo(info);
    info[0] = x_velocity;
    info[1] = y_velocity;
    info[2] = forward_reward;
    info[3] = -ctrl_cost;
    if (!v5_) info[4] = forward_reward;
    return {.reward = forward_reward - ctrl_cost};
  }

  double* PositionInfo(double* info) const override {
    info[0] = qpos()[0];
    info[1] = qpos()[1];
    info[2] = npy::Norm(qpos(), 2);
    return info + 3;
  }

  void Observe(double* obs) const override {
    obs = Append(obs, qpos() + skipped_qpos_, model().nq - skipped_qpos_);
    Append(obs, qvel(), model().nv);
  }

 private:
  const bool v5_;
  const double forward_reward_weight_;
  const double ctrl_cost_weight_;
  const int skipped_qpos_;
};

}  // namespace

std::unique_ptr<Environment> MakeSwimmerV5(const Params& params, ModelCache& models) {
  return std::make_unique<Swimmer>(params, models, GymVersion::kV5);
}

std::unique_ptr<Environment> MakeSwimmerV4(const Params& params, ModelCache& models) {
  return std::make_unique<Swimmer>(params, models, GymVersion::kV4);
}

}  // namespace pyfastenv
