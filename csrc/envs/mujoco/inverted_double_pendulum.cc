// InvertedDoublePendulum-v5 and -v4: gymnasium/envs/mujoco/inverted_double_pendulum_v{5,4}.py.
#include "core/errors.h"
#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

namespace {

class InvertedDoublePendulum final : public MujocoEnv {
 public:
  InvertedDoublePendulum(const Params& params, ModelCache& models, GymVersion version,
                         SpecBuilder&& spec = {})
      : MujocoEnv(spec, params, models, version,
                  {.xml_file = "inverted_double_pendulum.xml",
                   .frame_skip = 5,
                   .reset_noise_scale =
                       version == GymVersion::kV5 ? params.GetScale("reset_noise_scale", 0.1) : 0.1,
                   .velocity_noise = Robot::Noise::kNormal,
                   .reads = {.fields = {Field::site_xpos, Field::qfrc_constraint}},
                   .min_nq = 1,
                   .min_nv = 3}),
        v5_(version == GymVersion::kV5),
        healthy_reward_(v5_ ? params.GetWeight("healthy_reward", 10.0) : 10.0),
        num_constraints_(v5_ ? 1 : model().nv) {
    if (model().nsite == 0) {
      throw BadValue(spec->model_path, ": expected a model with a site, the pendulum's tip");
    }
    SetObservation(spec, 1 + 2 * (model().nq - 1) + model().nv + num_constraints_);
    if (!v5_) return;
    reward_survive_ = AddInfo(spec, "reward_survive", TypeOf(params, "healthy_reward", version));
    distance_penalty_ = AddInfo(spec, "distance_penalty");
    velocity_penalty_ = AddInfo(spec, "velocity_penalty");
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    Simulate(action);
    const double x = data().site_xpos[0];
    const double y = data().site_xpos[2];
    const bool terminated = y <= 1.0;
    const double distance_penalty = 0.01 * npy::Squared(x) + npy::Squared(y - 2.0);
    const double velocity_penalty = 1e-3 * npy::Squared(qvel()[1]) + 5e-3 * npy::Squared(qvel()[2]);
    const double alive_bonus = healthy_reward_ * (v5_ && terminated ? 0.0 : 1.0);
    if (v5_) {
      info[reward_survive_] = alive_bonus;
      info[distance_penalty_] = -distance_penalty;
      info[velocity_penalty_] = -velocity_penalty;
    }
    return {.reward = alive_bonus - distance_penalty - velocity_penalty, .terminated = terminated};
  }

  void Observe(double* obs) const override {
    const int nq = model().nq;
    *obs++ = qpos()[0];
    obs = std::transform(qpos() + 1, qpos() + nq, obs, npy::Math().sin);
    obs = std::transform(qpos() + 1, qpos() + nq, obs, npy::Math().cos);
    obs = AppendClipped(obs, qvel(), model().nv, -10.0, 10.0);
    AppendClipped(obs, data().qfrc_constraint, num_constraints_, -10.0, 10.0);
  }

 private:
  const bool v5_;
  const double healthy_reward_;
  const int num_constraints_;
  InfoSlot reward_survive_, distance_penalty_, velocity_penalty_;  // v5
};

}  // namespace

extern const EnvFactory kInvertedDoublePendulum = Make<InvertedDoublePendulum>;

}  // namespace pyfastenv
