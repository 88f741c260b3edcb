// AntDir-v5, AntVel-v5 and AntGoal-v5: tasks of Finn et al., Model-Agnostic Meta-Learning (2017),
// section 5.3, on gymnasium's v5 robot.
//
// Reward: goal term - 0.005 * |a|^2 - 0.0005 * |clip(cfrc_ext, -1, 1)|^2 + 0.05, the goal term
// being d * v (d = +-1), 1 - |v - v*| (v* ~ U[0, 3]) or 4 - |xy - goal|_1 (goal ~ U[-3, 3]^2). The
// episode ends when the torso's height leaves [0.2, 1.0]. Observation: qpos, qvel, clipped
// cfrc_ext, rotation matrix and position of the torso.
#include <cmath>

#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

namespace {

class AntMeta : public MujocoEnv {
 public:
  AntMeta(const Params& params, ModelCache& models, SpecBuilder& spec)
      : MujocoEnv(spec, params, models, GymVersion::kV5,
                  {.xml_file = "ant.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = params.GetScale("reset_noise_scale", 0.1),
                   .velocity_noise = Robot::Noise::kNormal,
                   .reads = {.fields = {Field::xpos, Field::xmat, Field::cfrc_ext}},
                   .cache_size = 2,
                   .min_nq = 3,
                   .min_nv = 1}),
        torso_(BodyId("torso")) {
    SetObservation(spec, model().nq + model().nv + 6 * model().nbody + 9 + 3);
    x_position_ = AddPositionInfo(spec, "x_position");
    y_position_ = AddPositionInfo(spec, "y_position");
    x_velocity_ = AddInfo(spec, "x_velocity");
    reward_forward_ = AddInfo(spec, "reward_forward");
    reward_ctrl_ = AddActionInfo(spec, "reward_ctrl");
    reward_contact_ = AddInfo(spec, "reward_contact");
    reward_survive_ = AddInfo(spec, "reward_survive");
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    const double x_before = cache()[0];
    Simulate(action);
    UpdateCache();
    const double x_velocity = (cache()[0] - x_before) / dt();
    const double goal_reward = GoalReward(x_velocity, cache());
    const double ctrl_cost = ControlCost(0.005, action).value();
    const double contact_cost =
        0.0005 * ClippedSumOfSquares(data().cfrc_ext, ptrdiff_t{6} * model().nbody, -1.0, 1.0);
    constexpr double kSurviveReward = 0.05;
    info[x_velocity_] = x_velocity;
    info[reward_forward_] = goal_reward;
    info[reward_ctrl_] = -ctrl_cost;
    info[reward_contact_] = -contact_cost;
    info[reward_survive_] = kSurviveReward;
    return {.reward = goal_reward - ctrl_cost - contact_cost + kSurviveReward,
            .terminated = !IsHealthy()};
  }

  void PositionInfo(InfoRow info) const override {
    info[x_position_] = body_xpos(torso_)[0];
    info[y_position_] = body_xpos(torso_)[1];
  }

  void UpdateCache() override { std::copy_n(body_xpos(torso_), 2, cache()); }

  void Observe(double* obs) const override {
    obs = AppendMotion(obs);
    obs = AppendClipped(obs, data().cfrc_ext, ptrdiff_t{6} * model().nbody, -1.0, 1.0);
    obs = Append(obs, data().xmat + 9 * static_cast<ptrdiff_t>(torso_), 9);
    Append(obs, body_xpos(torso_), 3);
  }

 protected:
  virtual double GoalReward(double x_velocity, const double* xy) const = 0;

 private:
  bool IsHealthy() const { return IsFinite() && qpos()[2] >= 0.2 && qpos()[2] <= 1.0; }

  const int torso_;
  InfoSlot x_position_, y_position_, x_velocity_;
  InfoSlot reward_forward_, reward_ctrl_, reward_contact_, reward_survive_;
};

class AntDir final : public AntMeta {
 public:
  AntDir(const Params& params, ModelCache& models, SpecBuilder&& spec = {})
      : AntMeta(params, models, spec) {
    spec->tasks.push_back({.name = "direction", .sampler = TaskField::Sampler::kSign});
  }
  double GoalReward(double x_velocity, const double* /*xy*/) const override {
    return task()[0] * x_velocity;
  }
};

class AntVel final : public AntMeta {
 public:
  AntVel(const Params& params, ModelCache& models, SpecBuilder&& spec = {})
      : AntMeta(params, models, spec) {
    spec->tasks.push_back({.name = "velocity", .low = 0.0, .high = 3.0});
  }
  double GoalReward(double x_velocity, const double* /*xy*/) const override {
    return 1.0 - std::abs(x_velocity - task()[0]);
  }
};

class AntGoal final : public AntMeta {
 public:
  AntGoal(const Params& params, ModelCache& models, SpecBuilder&& spec = {})
      : AntMeta(params, models, spec) {
    spec->tasks.push_back({.name = "goal", .size = 2, .low = -3.0, .high = 3.0});
  }
  double GoalReward(double /*x_velocity*/, const double* xy) const override {
    return 4.0 - (std::abs(xy[0] - task()[0]) + std::abs(xy[1] - task()[1]));
  }
};

}  // namespace

extern const EnvFactory kAntDir = Make<AntDir>;
extern const EnvFactory kAntVel = Make<AntVel>;
extern const EnvFactory kAntGoal = Make<AntGoal>;

}  // namespace pyfastenv
