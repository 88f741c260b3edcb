// HumanoidStandup-v5 and -v4: gymnasium/envs/mujoco/humanoidstandup_v{5,4}.py.
#include <limits>

#include "envs/mujoco/humanoid_body.h"
#include "envs/registry.h"

namespace pyfastenv {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// v4 takes no arguments of its own
double Weight(const Params& params, GymVersion version, const char* name, double value) {
  return version == GymVersion::kV5 ? params.Get(name, value) : value;
}

class HumanoidStandup final : public MujocoEnv {
 public:
  HumanoidStandup(const Params& params, ModelCache& models, GymVersion version)
      : MujocoEnv(params, models, version,
                  {.xml_file = "humanoidstandup.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = Weight(params, version, "reset_noise_scale", 1e-2),
                   .external_forces = true,
                   .min_nq = 3,
                   .min_nv = 6}),
        v5_(version == GymVersion::kV5),
        ctrl_cost_weight_(Weight(params, version, "ctrl_cost_weight", 0.1)),
        impact_cost_weight_(Weight(params, version, "impact_cost_weight", 5e-7)),
        impact_cost_range_(v5_ ? params.GetRange("impact_cost_range", {-kInfinity, 10.0})
                               : Params::Range{-kInfinity, 10.0}),
        observation_(params, version,
                     !v5_ || params.GetBool("exclude_current_positions_from_observation", true)) {
    if (v5_) params.Get("uph_cost_weight", 1.0);  // gymnasium takes it and does not use it
    SetObservation(observation_.Size(model()));
    if (v5_) {
      AddPositionInfo("x_position");
      AddPositionInfo("y_position");
      AddPositionInfo("z_distance_from_origin");
      AddPositionInfo("tendon_length", model().ntendon);
      AddPositionInfo("tendon_velocity", model().ntendon);
    }
    for (const char* name : {"reward_linup", "reward_quadctrl", "reward_impact"}) AddInfo(name);
  }

  void ResetModel(Random& random) override {
    NoisyPositions(random);
    UniformVelocities(random);
  }

  StepResult StepTask(const Action& action, double* info) override {
    Simulate(action);
    const double uph_cost = qpos()[2] / model().opt.timestep;
    const double ctrl_cost = ctrl_cost_weight_ * npy::SumOfSquares(data().ctrl, model().nu);
    const double impact_cost = npy::Clip(
        impact_cost_weight_ * npy::SumOfSquares(data().cfrc_ext, ptrdiff_t{6} * model().nbody),
        impact_cost_range_.first, impact_cost_range_.second);
    info = PositionInfo(info);
    info[0] = uph_cost;
    info[1] = -ctrl_cost;
    info[2] = -impact_cost;
    return {.reward = uph_cost - ctrl_cost - impact_cost + 1.0};
  }

  double* PositionInfo(double* info) const override {
    if (!v5_) return info;
    info[0] = qpos()[0];
    info[1] = qpos()[1];
    info[2] = qpos()[2] - init_qpos()[2];
    return AppendTendons(info + 3, model(), data());
  }

  void Observe(double* obs) const override { observation_.Write(model(), data(), obs); }

 private:
  const bool v5_;
  const double ctrl_cost_weight_;
  const double impact_cost_weight_;
  const Params::Range impact_cost_range_;
  const HumanoidObservation observation_;
};

}  // namespace

std::unique_ptr<Environment> MakeHumanoidStandupV5(const Params& params, ModelCache& models) {
  return std::make_unique<HumanoidStandup>(params, models, GymVersion::kV5);
}

std::unique_ptr<Environment> MakeHumanoidStandupV4(const Params& params, ModelCache& models) {
  return std::make_unique<HumanoidStandup>(params, models, GymVersion::kV4);
}

}  // namespace pyfastenv
