// Pusher-v5: gymnasium/envs/mujoco/pusher_v5.py. (Pusher-v4 needs MuJoCo < 3.)
#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

namespace {

class Pusher final : public MujocoEnv {
 public:
  Pusher(const Params& params, ModelCache& models, SpecBuilder&& spec = {})
      : MujocoEnv(spec, params, models, GymVersion::kV5,
                  {.xml_file = "pusher_v5.xml",
                   .frame_skip = 5,
                   .reads = {.fields = {Field::xpos}},
                   .min_nq = 11,
                   .min_nv = 7}),
        reward_near_weight_(params.GetWeight("reward_near_weight", 0.5)),
        reward_dist_weight_(params.GetWeight("reward_dist_weight", 1.0)),
        reward_control_weight_(params.GetWeight("reward_control_weight", 0.1)),
        tips_arm_(BodyId("tips_arm")),
        object_(BodyId("object")),
        goal_(BodyId("goal")) {
    SetObservation(spec, 7 + 7 + 9);
    reward_dist_ = AddInfo(spec, "reward_dist");
    reward_ctrl_ = AddActionInfo(spec, "reward_ctrl");
    reward_near_ = AddInfo(spec, "reward_near");
  }

  void ResetModel(Random& random) override {
    mjtNum* qpos = data().qpos;
    mjtNum* qvel = data().qvel;
    const int nq = model().nq;
    const int nv = model().nv;
    std::copy(init_qpos().begin(), init_qpos().end(), qpos);
    double cylinder[2];
    do {
      cylinder[0] = random.Uniform(-0.3, 0.0);
      cylinder[1] = random.Uniform(-0.2, 0.2);
    } while (npy::Norm(cylinder, 2) <= 0.17);
    std::copy_n(cylinder, 2, qpos + nq - 4);
    std::fill_n(qpos + nq - 2, 2, 0.0);
    for (int i = 0; i < nv; ++i) qvel[i] = random.Uniform(-0.005, 0.005);  // init_qvel is zero
    std::fill_n(qvel + nv - 4, 4, 0.0);
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    Simulate(action);
    const double reward_near = -Distance(tips_arm_) * reward_near_weight_;
    const double reward_dist = -Distance(goal_) * reward_dist_weight_;
    const double reward_ctrl = (-action.SumOfSquares() * reward_control_weight_).value();
    info[reward_dist_] = reward_dist;
    info[reward_ctrl_] = reward_ctrl;
    info[reward_near_] = reward_near;
    return {.reward = reward_dist + reward_ctrl + reward_near};
  }

  void Observe(double* obs) const override {
    obs = Append(obs, qpos(), 7);
    obs = Append(obs, qvel(), 7);
    for (const int body : {tips_arm_, object_, goal_}) obs = Append(obs, body_xpos(body), 3);
  }

 private:
  double Distance(int body) const {
    double vector[3];
    for (int k = 0; k < 3; ++k) vector[k] = body_xpos(object_)[k] - body_xpos(body)[k];
    return npy::Norm(vector, 3);
  }

  const double reward_near_weight_;
  const double reward_dist_weight_;
  const double reward_control_weight_;
  const int tips_arm_;
  const int object_;
  const int goal_;
  InfoSlot reward_dist_, reward_ctrl_, reward_near_;
};

}  // namespace

extern const EnvFactory kPusher = Make<Pusher>;

}  // namespace pyfastenv
