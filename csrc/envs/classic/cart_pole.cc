// CartPole-v1 and -v0: gymnasium/envs/classic_control/cartpole.py.
#include <limits>
#include <numbers>

#include "envs/classic/classic_env.h"
#include "envs/registry.h"
#include "npy/math.h"

namespace pyfastenv {

namespace {

constexpr double kGravity = 9.8;
constexpr double kMassCart = 1.0;
constexpr double kMassPole = 0.1;
constexpr double kTotalMass = kMassPole + kMassCart;
constexpr double kLength = 0.5;  // half the pole's
constexpr double kPoleMassLength = kMassPole * kLength;
constexpr double kForceMag = 10.0;
constexpr double kTau = 0.02;  // seconds between state updates
constexpr double kThetaThreshold = 12 * 2 * std::numbers::pi / 360;
constexpr double kXThreshold = 2.4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class CartPole final : public ClassicEnv<4, 4> {
 public:
  explicit CartPole(const Params& params, SpecBuilder&& spec = {})
      : ClassicEnv(spec, {-kXThreshold * 2, -kInfinity, -kThetaThreshold * 2, -kInfinity},
                   {kXThreshold * 2, kInfinity, kThetaThreshold * 2, kInfinity}),
        sutton_barto_reward_(params.GetBool("sutton_barto_reward", false)) {
    spec->num_actions = 2;
    spec->reset_options = {{"low", -0.05}, {"high", 0.05}};
    spec->render_fps = 50;
  }

  void Reset(Random& random, std::span<const double> options, InfoRow /*info*/) override {
    for (int i = 0; i < 4; ++i) state()[i] = random.Uniform(options[0], options[1]);
  }

  StepResult Step(const Action& action, Random& /*random*/, InfoRow /*info*/) override {
    double* s = state();
    const double force = action.index() == 1 ? kForceMag : -kForceMag;
    const double costheta = npy::Cos(s[2]);
    const double sintheta = npy::Sin(s[2]);
    const double temp = (force + kPoleMassLength * (s[3] * s[3]) * sintheta) / kTotalMass;
    const double thetaacc =
        (kGravity * sintheta - costheta * temp) /
        (kLength * (4.0 / 3.0 - kMassPole * (costheta * costheta) / kTotalMass));
    const double xacc = temp - kPoleMassLength * thetaacc * costheta / kTotalMass;
    s[0] += kTau * s[1];
    s[1] += kTau * xacc;
    s[2] += kTau * s[3];
    s[3] += kTau * thetaacc;
    const bool terminated = s[0] < -kXThreshold || s[0] > kXThreshold || s[2] < -kThetaThreshold ||
                            s[2] > kThetaThreshold;
    const double reward = sutton_barto_reward_ ? (terminated ? -1.0 : 0.0) : 1.0;
    return {.reward = reward, .terminated = terminated};
  }

 private:
  const bool sutton_barto_reward_;
};

}  // namespace

extern const EnvFactory kCartPole = Make<CartPole>;

}  // namespace pyfastenv
