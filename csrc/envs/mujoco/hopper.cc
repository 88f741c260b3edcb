// Hopper-v5 and -v4: gymnasium/envs/mujoco/hopper_v{5,4}.py.
#include "envs/mujoco/planar_walker.h"

namespace pyfastenv {

namespace {

class Hopper final : public PlanarWalker {
 public:
  Hopper(const Params& params, ModelCache& models, GymVersion version, SpecBuilder&& spec = {})
      : PlanarWalker(params, models, version, "hopper.xml", spec),
        healthy_state_range_(params.GetRange("healthy_state_range", {-100.0, 100.0})),
        healthy_z_range_(params.GetRange("healthy_z_range", {0.7, kInfinity})),
        healthy_angle_range_(params.GetRange("healthy_angle_range", {-0.2, 0.2})) {}

 private:
  bool IsHealthy() const override {
    const auto healthy = [&](double x) { return Within(x, healthy_state_range_); };
    return std::all_of(qpos() + 2, qpos() + model().nq, healthy) &&
           std::all_of(qvel(), qvel() + model().nv, healthy) &&
           Within(height(), healthy_z_range_) && Within(angle(), healthy_angle_range_);
  }

  const Params::Range healthy_state_range_;
  const Params::Range healthy_z_range_;
  const Params::Range healthy_angle_range_;
};

}  // namespace

extern const EnvFactory kHopper = Make<Hopper>;

}  // namespace pyfastenv
