// Acrobot-v1: gymnasium/envs/classic_control/acrobot.py ("book" dynamics, no torque noise).
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "envs/classic/classic_env.h"
#include "envs/registry.h"
#include "npy/math.h"

namespace pyfastenv {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kDt = 0.2;
constexpr double kLinkLength1 = 1.0;
constexpr double kLinkMass1 = 1.0;
constexpr double kLinkMass2 = 1.0;
constexpr double kLinkCom1 = 0.5;
constexpr double kLinkCom2 = 0.5;
constexpr double kLinkMoi = 1.0;
constexpr double kMaxVelocity1 = 4 * kPi;
constexpr double kMaxVelocity2 = 9 * kPi;
constexpr double kGravity = 9.8;

using Vector = std::array<double, 4>;

// s = (theta1, theta2, dtheta1, dtheta2) -> ds/dt
Vector Derivative(const Vector& s, double torque) {
  constexpr double m1 = kLinkMass1, m2 = kLinkMass2, l1 = kLinkLength1;
  constexpr double lc1 = kLinkCom1, lc2 = kLinkCom2, i1 = kLinkMoi, i2 = kLinkMoi;
  constexpr double g = kGravity;
  const auto [theta1, theta2, dtheta1, dtheta2] = s;
  const double cos2 = npy::Cos(theta2);
  const double sin2 = npy::Sin(theta2);
  const double d1 =
      m1 * (lc1 * lc1) + m2 * ((l1 * l1) + (lc2 * lc2) + 2 * l1 * lc2 * cos2) + i1 + i2;
  const double d2 = m2 * ((lc2 * lc2) + l1 * lc2 * cos2) + i2;
  const double phi2 = m2 * lc2 * g * npy::Cos(theta1 + theta2 - kPi / 2.0);
  const double phi1 = -m2 * l1 * lc2 * npy::Squared(dtheta2) * sin2 -
                      2 * m2 * l1 * lc2 * dtheta2 * dtheta1 * sin2 +
                      (m1 * lc1 + m2 * l1) * g * npy::Cos(theta1 - kPi / 2) + phi2;
  const double ddtheta2 =
      (torque + d2 / d1 * phi1 - m2 * l1 * lc2 * npy::Squared(dtheta1) * sin2 - phi2) /
      (m2 * (lc2 * lc2) + i2 - npy::Squared(d2) / d1);
  const double ddtheta1 = -(d2 * ddtheta2 + phi1) / d1;
  return {dtheta1, dtheta2, ddtheta1, ddtheta2};
}

Vector Add(const Vector& a, double scale, const Vector& b) {
  Vector sum;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + scale * b[i];
  return sum;
}

// one step of the classic Runge-Kutta method
Vector RungeKutta4(const Vector& s, double torque) {
  constexpr double half = kDt / 2.0;
  const Vector k1 = Derivative(s, torque);
  const Vector k2 = Derivative(Add(s, half, k1), torque);
  const Vector k3 = Derivative(Add(s, half, k2), torque);
  const Vector k4 = Derivative(Add(s, kDt, k3), torque);
  Vector slope;
  for (size_t i = 0; i < slope.size(); ++i) slope[i] = k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i];
  return Add(s, kDt / 6.0, slope);
}

// gymnasium's loop, bit for bit, for as many turns as it makes in a tenth of a second. It takes
// hours for 1e12 and never ends from 1e17 on, where x - 2 * pi == x: such angles are wrapped at
// once.
double Wrap(double x) {
  constexpr int kMaxTurns = 1'000'000;
  for (int turn = 0; turn < kMaxTurns; ++turn) {
    if (x > kPi) {
      x -= kPi - -kPi;
    } else if (x < -kPi) {
      x += kPi - -kPi;
    } else {
      return x;
    }
  }
  return std::remainder(x, 2 * kPi);
}

class Acrobot final : public ClassicEnv<5, 6> {
 public:
  explicit Acrobot(SpecBuilder&& spec = {})
      : ClassicEnv(spec, {-1.0, -1.0, -1.0, -1.0, -kMaxVelocity1, -kMaxVelocity2},
                   {1.0, 1.0, 1.0, 1.0, kMaxVelocity1, kMaxVelocity2}) {
    spec->num_actions = 3;
    spec->reset_options = {{"low", -0.1}, {"high", 0.1}};
    spec->render_fps = 15;
  }

  void Reset(Random& random, std::span<const double> options, InfoRow /*info*/) override {
    for (int i = 0; i < 4; ++i) {
      state()[i] = static_cast<float>(random.Uniform(options[0], options[1]));
    }
    state()[kFresh] = 1.0;
  }

  StepResult Step(const Action& action, Random& /*random*/, InfoRow /*info*/) override {
    const double torque = static_cast<double>(action.index()) - 1.0;
    Vector s;
    std::copy_n(state(), s.size(), s.begin());
    s = RungeKutta4(s, torque);
    if (!std::all_of(s.begin(), s.end(), [](double x) { return std::isfinite(x); })) {
      // where gymnasium's wrap of an infinite angle never ends: an episode that ends as those of
      // diverged physics do, in the default pose
      std::fill_n(state(), s.size(), 0.0);
      state()[kFresh] = 1.0;
      return {.reward = 0.0, .terminated = true, .diverged = true};
    }
    s[0] = Wrap(s[0]);
    s[1] = Wrap(s[1]);
    s[2] = npy::Clip(s[2], -kMaxVelocity1, kMaxVelocity1);
    s[3] = npy::Clip(s[3], -kMaxVelocity2, kMaxVelocity2);
    std::copy(s.begin(), s.end(), state());
    state()[kFresh] = 0.0;
    const bool terminated = -npy::Cos(s[0]) - npy::Cos(s[1] + s[0]) > 1.0;
    return {.reward = terminated ? 0.0 : -1.0, .terminated = terminated};
  }

  void Observe(double* obs) const override {
    for (int i = 0; i < 2; ++i) {
      if (state()[kFresh] != 0.0) {  // the state of a reset is float32, and so are its cosines
        const auto theta = static_cast<float>(state()[i]);
        obs[2 * i] = npy::Cos(theta);
        obs[2 * i + 1] = npy::Sin(theta);
      } else {
        obs[2 * i] = npy::Cos(state()[i]);
        obs[2 * i + 1] = npy::Sin(state()[i]);
      }
    }
    obs[4] = state()[2];
    obs[5] = state()[3];
  }

 private:
  static constexpr int kFresh = 4;  // index of a flag: the state comes from a reset
};

}  // namespace

extern const EnvFactory kAcrobot = Make<Acrobot>;

}  // namespace pyfastenv
