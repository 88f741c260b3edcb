// Walker2d-v5 and -v4: gymnasium/envs/mujoco/walker2d_v{5,4}.py.
#include "envs/mujoco/planar_walker.h"

namespace pyfastenv {

namespace {

class Walker2d final : public PlanarWalker {
 public:
  Walker2d(const Params& params, ModelCache& models, GymVersion version, SpecBuilder&& spec = {})
      : PlanarWalker(params, models, version,
                     version == GymVersion::kV5 ? "walker2d_v5.xml" : "walker2d.xml", spec),
        healthy_z_range_(params.GetRange("healthy_z_range", {0.8, 2.0})),
        healthy_angle_range_(params.GetRange("healthy_angle_range", {-1.0, 1.0})) {}

 private:
  bool IsHealthy() const override {
    return Within(height(), healthy_z_range_) && Within(angle(), healthy_angle_range_);
  }

  const Params::Range healthy_z_range_;
  const Params::Range healthy_angle_range_;
};

}  // namespace

extern const EnvFactory kWalker2d = Make<Walker2d>;

}  // namespace pyfastenv
