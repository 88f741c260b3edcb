// MountainCarContinuous-v0: gymnasium/envs/classic_control/continuous_mountain_car.py.
//
// gymnasium keeps the state as float32 after the first step, and as float64 before; its clipped
// actions and speeds are Python floats. NumpyScalar follows these types through the formulas.
#include <cmath>

#include "envs/classic/classic_env.h"
#include "envs/registry.h"
#include "npy/scalar.h"

namespace pyfastenv {

namespace {

constexpr double kMaxAction = 1.0;
constexpr double kMinPosition = -1.2;
constexpr double kMaxPosition = 0.6;
constexpr double kMaxSpeed = 0.07;
constexpr double kGoalPosition = 0.45;
constexpr double kPower = 0.0015;

class MountainCarContinuous final : public ClassicEnv<3, 2> {
 public:
  explicit MountainCarContinuous(const Params& params, SpecBuilder&& spec = {})
      : ClassicEnv(spec, {kMinPosition, -kMaxSpeed}, {kMaxPosition, kMaxSpeed}),
        goal_velocity_(params.GetThreshold("goal_velocity", 0.0)) {
    spec->action_low = {-kMaxAction};
    spec->action_high = {kMaxAction};
    spec->reset_options = {{"low", -0.6}, {"high", -0.4}};
    spec->render_fps = 30;
  }

  void Reset(Random& random, std::span<const double> options, InfoRow /*info*/) override {
    state()[0] = random.Uniform(options[0], options[1]);
    state()[1] = 0.0;
    state()[kFresh] = 1.0;
  }

  StepResult Step(const Action& action, Random& /*random*/, InfoRow /*info*/) override {
    const bool fresh = state()[kFresh] != 0.0;
    NumpyScalar position =
        fresh ? NumpyScalar::Float64(state()[0]) : NumpyScalar::Float32(state()[0]);
    NumpyScalar velocity =
        fresh ? NumpyScalar::Float64(state()[1]) : NumpyScalar::Float32(state()[1]);
    NumpyScalar force = action[0];
    if (force < -kMaxAction) force = -kMaxAction;
    if (force > kMaxAction) force = kMaxAction;

    const double slope = std::cos((NumpyScalar(3.0) * position).value());
    velocity = velocity + (force * kPower - NumpyScalar(0.0025 * slope));
    if (velocity > kMaxSpeed) velocity = kMaxSpeed;
    if (velocity < -kMaxSpeed) velocity = -kMaxSpeed;
    position = position + velocity;
    if (position > kMaxPosition) position = kMaxPosition;
    if (position < kMinPosition) position = kMinPosition;
    if (position == kMinPosition && velocity < 0.0) velocity = 0.0;

    const bool terminated = position >= kGoalPosition && velocity >= goal_velocity_;
    double reward = terminated ? 100.0 : 0.0;
    reward -= ::pow(action[0].value(), 2.0) * 0.1;
    state()[0] = static_cast<float>(position.value());
    state()[1] = static_cast<float>(velocity.value());
    state()[kFresh] = 0.0;
    return {.reward = reward, .terminated = terminated};
  }

 private:
  static constexpr int kFresh = 2;  // index of a flag: the state comes from a reset

  const double goal_velocity_;
};

}  // namespace

extern const EnvFactory kMountainCarContinuous = Make<MountainCarContinuous>;

}  // namespace pyfastenv
