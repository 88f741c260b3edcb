// HumanoidStandup-v5 and -v4: gymnasium/envs/mujoco/humanoidstandup_v{5,4}.py.
#include "envs/mujoco/humanoid_body.h"

namespace pyfastenv {

namespace {

class HumanoidStandup final : public MujocoEnv {
 public:
  HumanoidStandup(const Params& params, ModelCache& models, GymVersion version,
                  SpecBuilder&& spec = {})
      : MujocoEnv(
            spec, params, models, version,
            {.xml_file = "humanoidstandup.xml",
             .frame_skip = 5,
             .reset_noise_scale =
                 version == GymVersion::kV5 ? params.GetScale("reset_noise_scale", 1e-2) : 1e-2,
             .reads = {.fields = HumanoidObservation::Reads({}, version)},
             .min_nq = 3,
             .min_nv = 6}),
        v5_(version == GymVersion::kV5),
        ctrl_cost_weight_(v5_ ? params.GetWeight("ctrl_cost_weight", 0.1) : 0.1),
        impact_cost_weight_(v5_ ? params.GetWeight("impact_cost_weight", 5e-7) : 5e-7),
        impact_cost_range_(v5_ ? params.GetRange("impact_cost_range", {-kInfinity, 10.0})
                               : Params::Range{-kInfinity, 10.0}),
        observation_(params, version,
                     !v5_ || params.GetBool("exclude_current_positions_from_observation", true)) {
    if (v5_) params.GetWeight("uph_cost_weight", 1.0);  // gymnasium takes it and does not use it
    SetObservation(spec, observation_.Size(model()));
    if (v5_) {
      x_position_ = AddPositionInfo(spec, "x_position");
      y_position_ = AddPositionInfo(spec, "y_position");
      z_distance_from_origin_ = AddPositionInfo(spec, "z_distance_from_origin");
      tendons_ = TendonInfos(spec, model());
    }
    reward_linup_ = AddInfo(spec, "reward_linup");
    reward_quadctrl_ = AddInfo(spec, "reward_quadctrl");
    reward_impact_ = AddInfo(spec, "reward_impact");
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    Simulate(action);
    const double uph_cost = qpos()[2] / model().opt.timestep;
    const double ctrl_cost = ctrl_cost_weight_ * npy::SumOfSquares(data().ctrl, model().nu);
    const double impact_cost = npy::Clip(
        impact_cost_weight_ * npy::SumOfSquares(data().cfrc_ext, ptrdiff_t{6} * model().nbody),
        impact_cost_range_.first, impact_cost_range_.second);
    info[reward_linup_] = uph_cost;
    info[reward_quadctrl_] = -ctrl_cost;
    info[reward_impact_] = -impact_cost;
    return {.reward = uph_cost - ctrl_cost - impact_cost + 1.0};
  }

  void PositionInfo(InfoRow info) const override {
    if (!v5_) return;
    info[x_position_] = qpos()[0];
    info[y_position_] = qpos()[1];
    info[z_distance_from_origin_] = qpos()[2] - init_qpos()[2];
    tendons_.Write(data(), info);
  }

  void Observe(double* obs) const override { observation_.Write(model(), data(), obs); }

 private:
  const bool v5_;
  const double ctrl_cost_weight_;
  const double impact_cost_weight_;
  const Params::Range impact_cost_range_;
  const HumanoidObservation observation_;
  InfoSlot reward_linup_, reward_quadctrl_, reward_impact_;
  InfoSlot x_position_, y_position_, z_distance_from_origin_;  // v5
  TendonInfos tendons_;                                        // v5
};

}  // namespace

extern const EnvFactory kHumanoidStandup = Make<HumanoidStandup>;

}  // namespace pyfastenv
