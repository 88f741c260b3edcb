// InvertedPendulum-v5 and -v4: gymnasium/envs/mujoco/inverted_pendulum_v{5,4}.py.
#include <cmath>

#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

namespace {

class InvertedPendulum final : public MujocoEnv {
 public:
  InvertedPendulum(const Params& params, ModelCache& models, GymVersion version,
                   SpecBuilder&& spec = {})
      : MujocoEnv(
            spec, params, models, version,
            {.xml_file = "inverted_pendulum.xml",
             .frame_skip = 2,
             .reset_noise_scale =
                 version == GymVersion::kV5 ? params.GetScale("reset_noise_scale", 0.01) : 0.01,
             .min_nq = 2,
             .min_nv = 1}),
        v5_(version == GymVersion::kV5) {
    SetObservation(spec, model().nq + model().nv);
    if (v5_) reward_survive_ = AddInfo(spec, "reward_survive", InfoField::Type::kInt64);
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    Simulate(action);
    const bool terminated = !IsFinite() || std::abs(qpos()[1]) > 0.2;
    const double reward = v5_ && terminated ? 0.0 : 1.0;
    if (v5_) info[reward_survive_] = reward;
    return {.reward = reward, .terminated = terminated};
  }

  void Observe(double* obs) const override { AppendMotion(obs); }

 private:
  const bool v5_;
  InfoSlot reward_survive_;  // v5
};

}  // namespace

extern const EnvFactory kInvertedPendulum = Make<InvertedPendulum>;

}  // namespace pyfastenv
