// MountainCar-v0: gymnasium/envs/classic_control/mountain_car.py.
#include <cmath>

#include "envs/classic/classic_env.h"
#include "envs/registry.h"
#include "npy/math.h"

namespace pyfastenv {

namespace {

constexpr double kMinPosition = -1.2;
constexpr double kMaxPosition = 0.6;
constexpr double kMaxSpeed = 0.07;
constexpr double kGoalPosition = 0.5;
constexpr double kForce = 0.001;
constexpr double kGravity = 0.0025;

class MountainCar final : public ClassicEnv<2, 2> {
 public:
  explicit MountainCar(const Params& params, SpecBuilder&& spec = {})
      : ClassicEnv(spec, {kMinPosition, -kMaxSpeed}, {kMaxPosition, kMaxSpeed}),
        goal_velocity_(params.GetThreshold("goal_velocity", 0.0)) {
    spec->num_actions = 3;
    spec->reset_options = {{"low", -0.6}, {"high", -0.4}};
    spec->render_fps = 30;
  }

  void Reset(Random& random, std::span<const double> options, InfoRow /*info*/) override {
    state()[0] = random.Uniform(options[0], options[1]);
    state()[1] = 0.0;
  }

  StepResult Step(const Action& action, Random& /*random*/, InfoRow /*info*/) override {
    double position = state()[0];
    double velocity = state()[1];
    // math.cos is the C library's, not NumPy's
    velocity +=
        static_cast<double>(action.index() - 1) * kForce + std::cos(3 * position) * -kGravity;
    velocity = npy::Clip(velocity, -kMaxSpeed, kMaxSpeed);
    position = npy::Clip(position + velocity, kMinPosition, kMaxPosition);
    if (position == kMinPosition && velocity < 0.0) velocity = 0.0;
    state()[0] = position;
    state()[1] = velocity;
    return {.reward = -1.0, .terminated = position >= kGoalPosition && velocity >= goal_velocity_};
  }

 private:
  const double goal_velocity_;
};

}  // namespace

extern const EnvFactory kMountainCar = Make<MountainCar>;

}  // namespace pyfastenv
