// Reacher-v5 and -v4: gymnasium/envs/mujoco/reacher_v{5,4}.py.
#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

namespace {

class Reacher final : public MujocoEnv {
 public:
  Reacher(const Params& params, ModelCache& models, GymVersion version, SpecBuilder&& spec = {})
      : MujocoEnv(spec, params, models, version,
                  {.xml_file = "reacher.xml",
                   .frame_skip = 2,
                   .reads = {.fields = {Field::xpos}},
                   .cache_size = 3,
                   .min_nq = 2,
                   .min_nv = 2}),
        v5_(version == GymVersion::kV5),
        reward_dist_weight_(v5_ ? params.GetWeight("reward_dist_weight", 1.0) : 1.0),
        reward_control_weight_(v5_ ? params.GetWeight("reward_control_weight", 1.0) : 1.0),
        fingertip_(BodyId("fingertip")),
        target_(BodyId("target")) {
    SetObservation(spec, 4 + (model().nq - 2) + 2 + (v5_ ? 2 : 3));
    reward_dist_ = AddInfo(spec, "reward_dist");
    reward_ctrl_ = AddActionInfo(spec, "reward_ctrl");
  }

  void ResetModel(Random& random) override {
    mjtNum* qpos = data().qpos;
    mjtNum* qvel = data().qvel;
    const int nq = model().nq;
    const int nv = model().nv;
    for (int i = 0; i < nq; ++i) {
      qpos[i] = random.Uniform(-0.1, 0.1) + init_qpos()[static_cast<size_t>(i)];
    }
    double goal[2];
    do {
      for (double& x : goal) x = random.Uniform(-0.2, 0.2);
    } while (npy::Norm(goal, 2) >= 0.2);
    std::copy_n(goal, 2, qpos + nq - 2);
    for (int i = 0; i < nv; ++i) qvel[i] = random.Uniform(-0.005, 0.005);  // init_qvel is zero
    std::fill_n(qvel + nv - 2, 2, 0.0);
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    // v4 rewards the position that the step starts from
    if (v5_) {
      Simulate(action);
      UpdateCache();
    }
    const double reward_dist = -npy::Norm(cache(), 3) * reward_dist_weight_;
    const double reward_ctrl = (-action.SumOfSquares() * reward_control_weight_).value();
    if (!v5_) {
      Simulate(action);
      UpdateCache();
    }
    info[reward_dist_] = reward_dist;
    info[reward_ctrl_] = reward_ctrl;
    return {.reward = reward_dist + reward_ctrl};
  }

  // from the target to the fingertip
  void UpdateCache() override {
    for (int k = 0; k < 3; ++k) cache()[k] = body_xpos(fingertip_)[k] - body_xpos(target_)[k];
  }

  void Observe(double* obs) const override {
    obs = std::transform(qpos(), qpos() + 2, obs, npy::Math().cos);
    obs = std::transform(qpos(), qpos() + 2, obs, npy::Math().sin);
    obs = Append(obs, qpos() + 2, model().nq - 2);
    obs = Append(obs, qvel(), 2);
    for (int k = 0; k < (v5_ ? 2 : 3); ++k) {
      obs[k] = body_xpos(fingertip_)[k] - body_xpos(target_)[k];
    }
  }

 private:
  const bool v5_;
  const double reward_dist_weight_;
  const double reward_control_weight_;
  const int fingertip_;
  const int target_;
  InfoSlot reward_dist_, reward_ctrl_;
};

}  // namespace

extern const EnvFactory kReacher = Make<Reacher>;

}  // namespace pyfastenv
