// Humanoid-v5 and -v4: gymnasium/envs/mujoco/humanoid_v{5,4}.py.
#include <algorithm>
#include <array>
#include <cmath>

#include "envs/mujoco/humanoid_body.h"

namespace pyfastenv {

namespace {

class Humanoid final : public MujocoEnv {
 public:
  Humanoid(const Params& params, ModelCache& models, GymVersion version, SpecBuilder&& spec = {})
      : MujocoEnv(spec, params, models, version,
                  {.xml_file = "humanoid.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = params.GetScale("reset_noise_scale", 1e-2),
                   .reads = {.fields = HumanoidObservation::Reads({Field::xipos}, version)},
                   .cache_per_body = 2,
                   .min_nq = 3,
                   .min_nv = 6}),
        v5_(version == GymVersion::kV5),
        forward_reward_weight_(params.GetWeight("forward_reward_weight", 1.25)),
        ctrl_cost_weight_(params.GetWeight("ctrl_cost_weight", 0.1)),
        contact_cost_weight_(v5_ ? params.GetWeight("contact_cost_weight", 5e-7) : 0.0),
        contact_cost_range_(v5_ ? params.GetRange("contact_cost_range", {-kInfinity, 10.0})
                                : Params::Range{}),
        healthy_reward_(params.GetWeight("healthy_reward", 5.0)),
        terminate_when_unhealthy_(params.GetBool("terminate_when_unhealthy", true)),
        healthy_z_range_(params.GetRange("healthy_z_range", {1.0, 2.0})),
        observation_(params, version,
                     params.GetBool("exclude_current_positions_from_observation", true)) {
    SetObservation(spec, observation_.Size(model()));
    x_position_ = AddPositionInfo(spec, "x_position", version);
    y_position_ = AddPositionInfo(spec, "y_position", version);
    if (v5_) tendons_ = TendonInfos(spec, model());
    distance_from_origin_ = AddPositionInfo(spec, "distance_from_origin", version);
    x_velocity_ = AddInfo(spec, "x_velocity");
    y_velocity_ = AddInfo(spec, "y_velocity");
    reward_survive_ = AddInfo(spec, v5_ ? "reward_survive" : "reward_alive",
                              TypeOf(params, "healthy_reward", version));
    reward_forward_ = AddInfo(spec, v5_ ? "reward_forward" : "reward_linvel");
    reward_ctrl_ = AddInfo(spec, v5_ ? "reward_ctrl" : "reward_quadctrl");
    if (v5_) {
      reward_contact_ = AddInfo(spec, "reward_contact");
    } else {
      forward_reward_ = AddInfo(spec, "forward_reward");
    }
  }

  StepResult StepTask(const Action& action, InfoRow info) override {
    const Place before = MassCenter();
    Simulate(action);
    UpdateCache();
    const Place after = MassCenter();
    const double x_velocity = (after[0] - before[0]) / dt();
    const double y_velocity = (after[1] - before[1]) / dt();
    const bool healthy = healthy_z_range_.first < qpos()[2] && qpos()[2] < healthy_z_range_.second;
    const double forward_reward = forward_reward_weight_ * x_velocity;
    // v4 pays the reward of health for the last step too
    const bool paid = healthy || (!v5_ && terminate_when_unhealthy_);
    const double healthy_reward = (paid ? 1.0 : 0.0) * healthy_reward_;
    const double ctrl_cost = ctrl_cost_weight_ * npy::SumOfSquares(data().ctrl, model().nu);
    double costs = ctrl_cost;
    info[x_velocity_] = x_velocity;
    info[y_velocity_] = y_velocity;
    info[reward_survive_] = healthy_reward;
    info[reward_forward_] = forward_reward;
    info[reward_ctrl_] = -ctrl_cost;
    if (v5_) {
      const double contact_cost = ContactCost();
      costs = ctrl_cost + contact_cost;
      info[reward_contact_] = -contact_cost;
    } else {
      info[forward_reward_] = forward_reward;
    }
    return {.reward = forward_reward + healthy_reward - costs,
            .terminated = !healthy && terminate_when_unhealthy_};
  }

  void PositionInfo(InfoRow info) const override {
    const Place position = v5_ ? Place{qpos()[0], qpos()[1]} : MassCenter();
    info[x_position_] = position[0];
    info[y_position_] = position[1];
    info[distance_from_origin_] = npy::Norm(position.data(), 2);
    if (v5_) tendons_.Write(data(), info);
  }

  // bodies' places, whose masses may be others by the next step
  void UpdateCache() override {
    for (int b = 0; b < model().nbody; ++b) std::copy_n(data().xipos + 3 * b, 2, cache() + 2 * b);
  }

  void Observe(double* obs) const override { observation_.Write(model(), data(), obs); }

 private:
  using Place = std::array<double, 2>;

  // mass_center(): np.einsum('b,bj->j', body_mass, xipos) / body_mass.sum()
  Place MassCenter() const {
    Place center{};
    const mjtNum* mass = model().body_mass;
    const double total =
        npy::PairwiseSum<double>([mass](ptrdiff_t b) { return mass[b]; }, 0, model().nbody);
    for (int j = 0; j < 2; ++j) {
      double sum = 0.0;
      for (int b = 0; b < model().nbody; ++b) {
        const double x = cache()[2 * b + j];
#if defined(__aarch64__)
        sum = std::fma(mass[b], x, sum);  // einsum's vector loop there is fused
#else
        sum += mass[b] * x;
#endif
      }
      center[static_cast<size_t>(j)] = sum / total;
    }
    return center;
  }

  double ContactCost() const {
    const double cost =
        contact_cost_weight_ * npy::SumOfSquares(data().cfrc_ext, ptrdiff_t{6} * model().nbody);
    return npy::Clip(cost, contact_cost_range_.first, contact_cost_range_.second);
  }

  const bool v5_;
  const double forward_reward_weight_;
  const double ctrl_cost_weight_;
  const double contact_cost_weight_;
  const Params::Range contact_cost_range_;
  const double healthy_reward_;
  const bool terminate_when_unhealthy_;
  const Params::Range healthy_z_range_;
  const HumanoidObservation observation_;
  InfoSlot x_position_, y_position_, distance_from_origin_, x_velocity_, y_velocity_;
  InfoSlot reward_survive_, reward_forward_, reward_ctrl_;
  TendonInfos tendons_;      // v5
  InfoSlot reward_contact_;  // v5
  InfoSlot forward_reward_;  // v4
};

}  // namespace

extern const EnvFactory kHumanoid = Make<Humanoid>;

}  // namespace pyfastenv
