// Pendulum-v1: gymnasium/envs/classic_control/pendulum.py.
#include <limits>
#include <numbers>

#include "envs/classic/classic_env.h"
#include "envs/registry.h"
#include "npy/math.h"

namespace pyfastenv {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kMaxSpeed = 8.0;
constexpr double kMaxTorque = 2.0;
constexpr double kDt = 0.05;
constexpr double kMass = 1.0;
constexpr double kLength = 1.0;

class Pendulum final : public ClassicEnv<3, 3> {
 public:
  explicit Pendulum(const Params& params, SpecBuilder&& spec = {})
      : ClassicEnv(spec, {-1.0, -1.0, -kMaxSpeed}, {1.0, 1.0, kMaxSpeed}),
        g_(params.GetWeight("g", 10.0)) {
    spec->action_low = {-kMaxTorque};
    spec->action_high = {kMaxTorque};
    spec->reset_options = {{"x_init", kPi}, {"y_init", 1.0}};
    spec->render_fps = 30;
  }

  void Reset(Random& random, std::span<const double> options, InfoRow /*info*/) override {
    for (size_t i = 0; i < 2; ++i) state()[i] = random.Uniform(-options[i], options[i]);
    state()[kLastTorque] = std::numeric_limits<double>::quiet_NaN();
  }

  StepResult Step(const Action& action, Random& /*random*/, InfoRow /*info*/) override {
    const double theta = state()[0];
    const double theta_dot = state()[1];
    NumpyScalar torque = action[0];
    if (torque < -kMaxTorque) torque = Like(torque, -kMaxTorque);
    if (torque > kMaxTorque) torque = Like(torque, kMaxTorque);

    const double angle = npy::Remainder(theta + kPi, 2 * kPi) - kPi;
    const double costs = npy::Squared(angle) + 0.1 * npy::Squared(theta_dot) +
                         (NumpyScalar(0.001) * torque.Squared()).value();
    const double gain = 3 * g_ / (2 * kLength);
    const double torque_gain = 3.0 / (kMass * kLength * kLength);
    const double acceleration =
        gain * npy::Sin(theta) + (NumpyScalar(torque_gain) * torque).value();
    const double new_theta_dot = npy::Clip(theta_dot + acceleration * kDt, -kMaxSpeed, kMaxSpeed);
    state()[0] = theta + new_theta_dot * kDt;
    state()[1] = new_theta_dot;
    state()[kLastTorque] = torque.value();
    return {.reward = -costs};
  }

  void Observe(double* obs) const override {
    obs[0] = npy::Cos(state()[0]);
    obs[1] = npy::Sin(state()[0]);
    obs[2] = state()[1];
  }

 private:
  static constexpr int kLastTorque = 2;  // index of what gymnasium's picture shows as an arrow

  static NumpyScalar Like(NumpyScalar x, double value) {
    return x.is_float32() ? NumpyScalar::Float32(value) : NumpyScalar::Float64(value);
  }

  const double g_;
};

}  // namespace

extern const EnvFactory kPendulum = Make<Pendulum>;

}  // namespace pyfastenv
