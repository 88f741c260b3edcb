// From accelerations to the next state: mj_Euler, mj_implicit (implicitfast), mj_RungeKutta.
#include "lanes/stages/sine_cosine.h"
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// mju_quatIntegrate: q turned by the angular velocity v over a time h.
void TurnQuat(const Tables& t, Lane* q, const Lane* v, double h) {
  const Lane speed = Sqrt(Dot3(v, v));
  const Lane inverse = 1.0 / speed;
  const Mask still = speed < kMinVal;
  const Lane angle = h * speed;
  const Lane half = angle * 0.5;
  Lane axis[3], sin_half, cos_half, turn[4];
  for (int i = 0; i < 3; ++i) axis[i] = Select(still, Splat(i == 0), v[i] * inverse);
  SineCosine(t.sine_by_series, half, sin_half, cos_half);
  AxisAngleToQuat(turn, axis, angle, sin_half, cos_half);
  Normalize4(q);
  MulQuat(q, q, turn);
}

// The numbers of a joint's position that velocities are added to.
int NumTranslations(const Joint& joint) {
  return joint.kind == JointKind::kFree ? 3 : joint.kind == JointKind::kBall ? 0 : 1;
}

// mj_integratePos
void AdvancePositions(const Tables& t, Lane* qpos, const Lane* v, double h) {
  for (int j = 0; j < t.njnt; ++j) {
    const Joint& joint = t.joint[j];
    const int moves = NumTranslations(joint);
    for (int i = 0; i < moves; ++i) {
      qpos[joint.qpos + i] = qpos[joint.qpos + i] + h * v[joint.dof + i];
    }
    if (HasRotation(joint)) TurnQuat(t, qpos + joint.qpos + moves, v + joint.dof + moves, h);
  }
}

// mj_advance; positions move with `v`, or with the new velocities if it is null.
void Advance(const Tables& t, Scratch& s, const Lane* act_dot, const Lane* acc, const Lane* v) {
  AdvanceActivations(t, s, act_dot);
  for (int i = 0; i < t.nv; ++i) s.qvel[i] = s.qvel[i] + acc[i] * t.timestep;
  AdvancePositions(t, s.qpos, v != nullptr ? v : s.qvel, t.timestep);
  for (int l = 0; l < kWidth; ++l) s.time[l] += t.timestep;
  for (int i = 0; i < t.nv; ++i) s.qacc_warmstart[i] = s.qacc[i];
}

void ImplicitInDamping(const Tables& t, Scratch& s) {
  if (!t.implicit_damping) {
    Advance(t, s, s.act_dot, s.qacc, nullptr);
    return;
  }
  Run(RecordedStage::kDampedAcceleration, t, s);
  s.redo |= ReplacedPivots(s.H_inverse_diagonal, t.nv);
  FreeBodyAccelerations(t, s);
  Advance(t, s, s.act_dot, s.acc, nullptr);
}

// ---- Runge-Kutta --------------------------------------------------------------------------------

// The velocity of a rotation after a turn `u`, seen where the turn began: w += (½ u× + f(|u|²) u×²)
// w, the inverse differential of exp, f by MuJoCo's polynomial. Larger turns take another way
// there.
void PullBack(Scratch& s, const Lane* u, Lane* w) {
  static constexpr double kPolynomial[9] = {
      1.230313397310169e-14,  3.1615515500778219e-13, 1.3455485951057888e-11,
      5.2828494303844588e-10, 2.0876900642039142e-08, 8.2671949071520734e-07,
      3.3068783094433201e-05, 0.0013888888888859755,  0.083333333333333384};
  constexpr double kLargeTurn = 1.75 * 1.75;
  const Lane squared = Dot3(u, u);
  s.redo |= Bits(!(squared < kLargeTurn)) & kAllLanes;
  Lane f = Splat(kPolynomial[0]);
  for (int i = 1; i < 9; ++i) f = f * squared + kPolynomial[i];
  Lane once[3], twice[3];
  Cross(once, u, w);
  Cross(twice, u, once);
  for (int i = 0; i < 3; ++i) w[i] = (once[i] * 0.5 + w[i]) + f * twice[i];
}

// The state at which evaluation k is made, a fraction `a` of the step ahead, from evaluation k - 1.
void MoveToEvaluation(const Tables& t, Scratch& s, int k, double a) {
  const Lane* previous_v = s.X + (k - 1) * t.nv;
  const Lane* previous_acc = s.F + (k - 1) * t.nv;
  Lane* v = s.X + k * t.nv;
  for (int i = 0; i < t.nv; ++i) s.dx[i] = 0.0 + previous_v[i] * a;
  for (int i = 0; i < t.nq; ++i) s.qpos[i] = s.q0[i];
  AdvancePositions(t, s.qpos, s.dx, t.timestep);
  for (int i = 0; i < t.nv; ++i) {
    v[i] = s.X[i] + (0.0 + previous_acc[i] * a) * t.timestep;
    s.qvel[i] = v[i];
  }
  const Lane* previous_rate = s.act_F + (k - 1) * t.na;
  for (int i = 0; i < t.na; ++i) {
    s.act[i] = s.act0[i] + (0.0 + previous_rate[i] * a) * t.timestep;
  }
  for (int j = 0; j < t.njnt; ++j) {
    if (!HasRotation(t.joint[j])) continue;
    const int dof = t.joint[j].dof + NumTranslations(t.joint[j]);
    Lane turn[3];
    for (int i = 0; i < 3; ++i) turn[i] = s.dx[dof + i] * t.timestep;
    PullBack(s, turn, v + dof);
  }
}

void RungeKutta4(const Tables& t, Scratch& s, bool keep_fields) {
  static constexpr double kAhead[4] = {0, 0.5, 0.5, 1};
  static constexpr double kWeight[4] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0};
  const int nv = t.nv;
  for (int i = 0; i < t.nq; ++i) s.q0[i] = s.qpos[i];
  for (int i = 0; i < nv; ++i) {
    s.X[i] = s.qvel[i];
    s.F[i] = s.qacc[i];
  }
  for (int i = 0; i < t.na; ++i) {
    s.act0[i] = s.act[i];
    s.act_F[i] = s.act_dot[i];
  }
  for (int k = 1; k < 4; ++k) {
    MoveToEvaluation(t, s, k, kAhead[k]);
    Evaluate(t, s, keep_fields && k == 3);
    for (int i = 0; i < nv; ++i) s.F[k * nv + i] = s.qacc[i];
    for (int i = 0; i < t.na; ++i) s.act_F[k * t.na + i] = s.act_dot[i];
  }
  for (int i = 0; i < nv; ++i) {
    s.dx[i] = s.dv[i] = Splat(0);
    for (int k = 0; k < 4; ++k) {
      s.dx[i] = s.dx[i] + s.X[k * nv + i] * kWeight[k];
      s.dv[i] = s.dv[i] + s.F[k * nv + i] * kWeight[k];
    }
  }
  for (int i = 0; i < t.na; ++i) {
    s.act[i] = s.act0[i];
    s.dact[i] = Splat(0);
    for (int k = 0; k < 4; ++k) s.dact[i] = s.dact[i] + s.act_F[k * t.na + i] * kWeight[k];
  }
  for (int i = 0; i < t.nq; ++i) s.qpos[i] = s.q0[i];
  for (int i = 0; i < nv; ++i) s.qvel[i] = s.X[i];
  Advance(t, s, s.dact, s.dv, s.dx);
  for (int i = 0; i < nv; ++i) s.qacc[i] = s.dv[i];  // the step's; the warm start is the fourth's
}

}  // namespace

void Integrate(const Tables& t, Scratch& s, bool keep_fields) {
  if (t.integrator == Integrator::kRungeKutta4) {
    RungeKutta4(t, s, keep_fields);
  } else {
    ImplicitInDamping(t, s);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
