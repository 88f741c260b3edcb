// implicitfast: derivatives of the smooth forces by velocities, and the matrix made of them:
// mjd_smooth_vel without bias, and the first half of mj_implicit.
#include "lanes/stages/blas.h"
#include "lanes/stages/muscles.h"
#include "lanes/stages/passive.h"
#include "lanes/stages/tendon_forces.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// qDeriv += b Jᵀ J for a row of a Jacobian
void AddOuterProduct(const Tables& t, Scratch& s, const SparseRows& rows, const Lane* J, int row,
                     Lane b) {
  for (int k = rows.rowadr[row]; k < rows.rowadr[row] + rows.rownnz[row]; ++k) {
    AddScaledRow(t.D, rows.colind[k], s.qDeriv, rows, row, J, J[k] * b);
  }
}

// x where a force is within its range, else zero: one that is clamped depends on no velocity.
Lane WhereFree(Lane force, const Lane* range, Lane x) {
  return WhereLess(range[0], force, WhereLess(force, range[1], x, Splat(0)), Splat(0));
}

// x where the sum of a tendon's actuator forces is within its bounds and no nearer than rounding:
// tendonActFrcClamped in the machine code.
Lane WhereTendonFree(const Tables& t, const Scratch& s, int tendon, Lane x) {
  constexpr double kRounding = 1e-10;
  const double* range = t.tendon[tendon].force_range;
  const Lane bounds[2] = {Splat(range[0] + __builtin_fabs(range[0]) * kRounding),
                          Splat(range[1] + __builtin_fabs(range[1]) * -kRounding)};
  return WhereFree(SumOfTendonForces(t, s, tendon), bounds, x);
}

// mjd_actuator_vel
void ActuatorDerivatives(const Tables& t, Scratch& s) {
  for (int a = 0; a < t.nu; ++a) {
    const Actuator& actuator = t.actuator[a];
    const bool gain = actuator.gain != ForceLaw::kFixed, bias = actuator.bias == ForceLaw::kAffine;
    if ((!bias && !gain) || actuator.disabled) continue;
    Lane by_velocity = bias ? s.actuator_biasprm[kBiasParameters * a + 2] : Splat(0);
    if (gain) {
      const Lane* parameters = s.actuator_gainprm + kGainParameters * a;
      const Lane gain_by_velocity =
          actuator.gain == ForceLaw::kAffine
              ? parameters[2]
              : MuscleGainByVelocity(actuator.muscle, s.actuator_length[a], s.actuator_velocity[a],
                                     parameters);
      by_velocity = by_velocity + gain_by_velocity * ActuatorInput(t, actuator, s, a);
    }
    if (actuator.clamp_force) {
      by_velocity = WhereFree(s.actuator_force[a], s.actuator_forcerange + 2 * a, by_velocity);
    }
    if (actuator.transmission == Transmission::kTendon && t.tendon[actuator.target].limits_force) {
      by_velocity = WhereTendonFree(t, s, actuator.target, by_velocity);
    }
    if (actuator.force_limited_joint >= 0) {
      const int j = actuator.force_limited_joint;
      by_velocity =
          WhereFree(s.qfrc_actuator[t.joint[j].dof], s.jnt_actfrcrange + 2 * j, by_velocity);
    }
    AddOuterProduct(t, s, t.moment, s.actuator_moment, a, by_velocity);
  }
}

// mjd_inertiaBoxFluid
void FluidDerivative(const Tables& t, Scratch& s, int b) {
  const Lane* mat = s.ximat + 9 * b;
  Lane arm[3], local[6];
  VelocityInFluid(t, s, b, arm, local);
  // the velocity in the box's frame by the dofs that move it
  int dofs[kMaxChain], count = 0;
  for (int i = t.body[b].last_dof; i >= 0; i = t.dof[i].parent) ++count;
  Lane J[6][kMaxChain];
  for (int i = t.body[b].last_dof, k = count - 1; i >= 0; i = t.dof[i].parent, --k) {
    Lane moved[3], turned[3], shifted[3];
    MovePoint(moved, s.cdof + 6 * i, arm);
    RotateBack(turned, mat, s.cdof + 6 * i);
    RotateBack(shifted, mat, moved);
    dofs[k] = i;
    for (int r = 0; r < 3; ++r) {
      J[r][k] = turned[r];
      J[3 + r][k] = shifted[r];
    }
  }
  const int begin = 0;
  const SparseRows row{&count, &begin, dofs};
  for (int r = 0; r < 6; ++r) {
    AddOuterProduct(t, s, row, J[r], 0, r < 3 ? s.viscous_torque[b] : s.viscous_force[b]);
  }
  for (int r = 0; r < 3; ++r) {
    const Lane torque = s.quadratic_torque[3 * b + r] * 2.0 * Abs(local[r]) / 64.0;
    AddOuterProduct(t, s, row, J[r], 0, -torque);
  }
  for (int r = 0; r < 3; ++r) {
    const Lane force = s.quadratic_force[3 * b + r] * 2.0 * Abs(local[3 + r]);
    AddOuterProduct(t, s, row, J[3 + r], 0, -force);
  }
}

// mjd_passive_vel
void PassiveDerivatives(const Tables& t, Scratch& s) {
  if (!t.passive) return;
  for (int b = 1; b < t.nbody; ++b) {
    if (t.body[b].in_fluid) FluidDerivative(t, s, b);
  }
  for (int i = 0; i < t.nv; ++i) {
    if (!t.dof[i].has_damper) continue;
    Lane& diagonal = s.qDeriv[t.D.rowadr[i] + t.D_diag[i]];
    diagonal = diagonal - DamperDerivative(DofDamping(t, s, i), t.dof[i].damper, s.qvel[i]);
  }
  for (int i = 0; i < t.ntendon; ++i) {
    const Tendon& tendon = t.tendon[i];
    if (!tendon.has_damper) continue;
    const Lane damping = DamperDerivative(TendonDamping(t, s, i), tendon.damper, s.ten_velocity[i]);
    AddOuterProduct(t, s, t.ten_J, s.ten_J, i, -damping);
  }
}

}  // namespace

void ImplicitMatrix(const Tables& t, Scratch& s) {
  for (int i = 0; i < t.nD; ++i) s.qDeriv[i] = Splat(0);
  if (t.actuation) ActuatorDerivatives(t, s);
  PassiveDerivatives(t, s);
  for (int i = 0; i < t.nC; ++i) s.H[i] = s.M[i] + s.qDeriv[t.mapD2M[i]] * -t.timestep;
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
