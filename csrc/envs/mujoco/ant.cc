// Ant-v5 and -v4: gymnasium/envs/mujoco/ant_v{5,4}.py.
#include "core/errors.h"
#include "envs/mujoco/mujoco_env.h"

namespace pyfastenv {

namespace {

struct AntParams {
  AntParams(const Params& params, GymVersion version)
      : v5(version == GymVersion::kV5),
        forward_reward_weight(v5 ? params.GetWeight("forward_reward_weight", 1.0) : 1.0),
        ctrl_cost_weight(params.GetWeight("ctrl_cost_weight", 0.5)),
        contact_cost_weight(params.GetWeight("contact_cost_weight", 5e-4)),
        healthy_reward(params.GetWeight("healthy_reward", 1.0)),
        reward_survive_type(TypeOf(params, "healthy_reward", version)),
        terminate_when_unhealthy(params.GetBool("terminate_when_unhealthy", true)),
        healthy_z_range(params.GetRange("healthy_z_range", {0.2, 1.0})),
        contact_force_range(params.GetRange("contact_force_range", {-1.0, 1.0})),
        reset_noise_scale(params.GetScale("reset_noise_scale", 0.1)),
        exclude_positions(params.GetBool("exclude_current_positions_from_observation", true)),
        contact_cost(v5 || params.GetBool("use_contact_forces", false)),
        contact_obs(v5 ? params.GetBool("include_cfrc_ext_in_observation", true) : contact_cost) {}

  /// The fields of mjData that the task reads.
  std::vector<lanes::Field> Reads() const {
    std::vector<lanes::Field> reads = {lanes::Field::xpos};
    if (contact_cost || contact_obs) reads.push_back(lanes::Field::cfrc_ext);
    return reads;
  }

  bool v5;
  double forward_reward_weight, ctrl_cost_weight, contact_cost_weight, healthy_reward;
  InfoField::Type reward_survive_type;
  bool terminate_when_unhealthy;
  Params::Range healthy_z_range, contact_force_range;
  double reset_noise_scale;
  bool exclude_positions;
  bool contact_cost, contact_obs;
};

// contact forces of all bodies (v4), or all but the world's (v5)
constexpr int kV5FirstBody = 1;

class Ant final : public MujocoEnv {
 public:
  Ant(const Params& params, ModelCache& models, GymVersion version)
      : Ant(params, models, version, AntParams(params, version), SpecBuilder()) {}

  StepResult StepTask(const Action& action, InfoRow info) override {
    const double x_before = cache()[0];
    const double y_before = cache()[1];
    Simulate(action);
    UpdateCache();
    const double x_velocity = (cache()[0] - x_before) / dt();
    const double y_velocity = (cache()[1] - y_before) / dt();
    const bool healthy = IsHealthy();
    const double forward_reward = x_velocity * p_.forward_reward_weight;
    // v4 pays the reward of health for the last step too
    const bool paid = healthy || (!p_.v5 && p_.terminate_when_unhealthy);
    const double healthy_reward = (paid ? 1.0 : 0.0) * p_.healthy_reward;
    const double ctrl_cost = ControlCost(p_.ctrl_cost_weight, action).value();
    const double contact_cost = p_.contact_cost ? ContactCost() : 0.0;
    const double costs = p_.contact_cost ? ctrl_cost + contact_cost : ctrl_cost;

    info[x_velocity_] = x_velocity;
    info[y_velocity_] = y_velocity;
    info[reward_forward_] = forward_reward;
    info[reward_ctrl_] = p_.v5 || !p_.contact_cost ? -ctrl_cost : -contact_cost;  // sic
    info[reward_survive_] = healthy_reward;
    if (p_.v5) {
      info[reward_contact_] = -contact_cost;
    } else {
      info[forward_reward_] = forward_reward;
    }
    return {.reward = forward_reward + healthy_reward - costs,
            .terminated = !healthy && p_.terminate_when_unhealthy};
  }

  void PositionInfo(InfoRow info) const override {
    const double* position = p_.v5 ? qpos() : cache();
    info[x_position_] = position[0];
    info[y_position_] = position[1];
    info[distance_from_origin_] = npy::Norm(position, 2);
  }

  void UpdateCache() override { std::copy_n(body_xpos(main_body_), 2, cache()); }

  void Observe(double* obs) const override {
    const int skipped = p_.exclude_positions ? 2 : 0;
    obs = AppendMotion(obs, skipped);
    if (!p_.contact_obs) return;
    const int first = p_.v5 ? kV5FirstBody : 0;
    AppendClipped(obs, data().cfrc_ext + 6 * first, 6 * (model().nbody - first),
                  p_.contact_force_range.first, p_.contact_force_range.second);
  }

 private:
  Ant(const Params& params, ModelCache& models, GymVersion version, const AntParams& p,
      SpecBuilder&& spec)
      : MujocoEnv(spec, params, models, version,
                  {.xml_file = "ant.xml",
                   .frame_skip = 5,
                   .reset_noise_scale = p.reset_noise_scale,
                   .velocity_noise = Robot::Noise::kNormal,
                   .reads = {.fields = p.Reads()},
                   .cache_size = 2,
                   .v4_takes_xml_file = true,
                   .min_nq = 3,
                   .min_nv = 1}),
        p_(p),
        main_body_(version == GymVersion::kV5 ? MainBody(params) : BodyId("torso")) {
    int size = model().nq + model().nv - (p_.exclude_positions ? 2 : 0);
    if (p_.contact_obs) size += 6 * (model().nbody - (p_.v5 ? kV5FirstBody : 0));
    SetObservation(spec, size);
    x_position_ = AddPositionInfo(spec, "x_position", version);
    y_position_ = AddPositionInfo(spec, "y_position", version);
    distance_from_origin_ = AddPositionInfo(spec, "distance_from_origin", version);
    x_velocity_ = AddInfo(spec, "x_velocity");
    y_velocity_ = AddInfo(spec, "y_velocity");
    reward_forward_ = AddInfo(spec, "reward_forward");
    // v4 writes the contact cost over it
    const bool overwritten = !p_.v5 && p_.contact_cost;
    reward_ctrl_ = overwritten ? AddInfo(spec, "reward_ctrl") : AddActionInfo(spec, "reward_ctrl");
    reward_survive_ = AddInfo(spec, "reward_survive", p_.reward_survive_type);
    if (p_.v5) {
      reward_contact_ = AddInfo(spec, "reward_contact");
    } else {
      forward_reward_ = AddInfo(spec, "forward_reward");
    }
  }

  int MainBody(const Params& params) const {
    const Params::Value* value = params.Find("main_body");
    if (value == nullptr) return 1;
    if (const auto* name = std::get_if<std::string>(value)) return BodyId(*name);
    const auto* id = std::get_if<int64_t>(value);
    if (id == nullptr) throw BadParamType("main_body: expected a body's id or name");
    if (*id < 0 || *id >= model().nbody) {
      throw BadValue("main_body: expected an id from 0 to ", model().nbody - 1, ", got ", *id);
    }
    return static_cast<int>(*id);
  }

  bool IsHealthy() const {
    return IsFinite() && p_.healthy_z_range.first <= qpos()[2] &&
           qpos()[2] <= p_.healthy_z_range.second;
  }

  double ContactCost() const {
    const auto [low, high] = p_.contact_force_range;
    return p_.contact_cost_weight *
           ClippedSumOfSquares(data().cfrc_ext, ptrdiff_t{6} * model().nbody, low, high);
  }

  const AntParams p_;
  const int main_body_;
  InfoSlot x_position_, y_position_, distance_from_origin_, x_velocity_, y_velocity_;
  InfoSlot reward_forward_, reward_ctrl_, reward_survive_;
  InfoSlot reward_contact_;  // v5
  InfoSlot forward_reward_;  // v4
};

}  // namespace

extern const EnvFactory kAnt = Make<Ant>;

}  // namespace pyfastenv
