// The stages of a step, in the order in which MuJoCo runs them, one file each.
//
// Every stage reads and writes fields of Scratch for all lanes at once and has the bits of the
// function of MuJoCo's that it names. What a stage cannot do in a lane it marks in Scratch::redo;
// it never stops the other lanes.
#pragma once

#include "lanes/stages/scratch.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

// ---- of the position ----------------------------------------------------------------------------

/// The world body's frame and its geoms' and sites', which no step changes.
void PlaceWorld(const Tables& t, Scratch& s);
/// sin_half, cos_half, spring_turn, ball_turn.
void Angles(const Tables& t, Scratch& s);
/// mj_kinematics after Angles: frames of bodies, joints, inertias, geoms and sites.
void Kinematics(const Tables& t, Scratch& s);
/// mj_comPos: subtree_com, cinert, cdof.
void CentersOfMass(const Tables& t, Scratch& s);
/// mj_tendon: ten_length, ten_J of fixed and of spatial tendons.
void FixedTendons(const Tables& t, Scratch& s);
void SpatialTendons(const Tables& t, Scratch& s);
inline void ClearTendon(const Tables& t, Scratch& s, int tendon) {
  s.ten_length[tendon] = Splat(0);
  const int begin = t.ten_J.rowadr[tendon], end = begin + t.ten_J.rownnz[tendon];
  for (int k = begin; k < end; ++k) s.ten_J[k] = Splat(0);
}
/// mj_makeM, mj_factorM: crb, M, qLD, qLDiagInv.
void InertiaMatrix(const Tables& t, Scratch& s);
/// mj_collision: contacts with the geometry that their geoms give.
void Collide(const Tables& t, Scratch& s);
/// mj_makeConstraint: dry friction's, limits' and contacts' rows with J, R and D. Completes
/// contacts' frames.
void MakeRows(const Tables& t, Scratch& s);

// ---- of position and velocity -------------------------------------------------------------------

/// mj_comVel: cvel, cdof_dot.
void Velocities(const Tables& t, Scratch& s);
/// mj_fwdVelocity: ten_velocity.
void TendonVelocities(const Tables& t, Scratch& s);
/// mj_passive: qfrc_spring, _damper, _gravcomp, _fluid, _passive.
void PassiveForces(const Tables& t, Scratch& s);
/// mj_fluid: adds to qfrc_fluid.
void FluidForces(const Tables& t, Scratch& s);
/// mj_referenceConstraint: aref; then zeroes what a lane's rows that do not exist hold.
void ReferenceAcceleration(const Tables& t, Scratch& s);
/// mj_rne without acceleration: qfrc_bias.
void BiasForces(const Tables& t, Scratch& s);

// ---- of the controls too ------------------------------------------------------------------------

/// Marks lanes with controls at which MuJoCo warns and sets all to zero.
void CheckControls(const Tables& t, Scratch& s);
inline Lane ClampedControl(const Actuator& actuator, const Scratch& s, int a) {
  if (!actuator.clamp_ctrl) return s.ctrl[a];
  return Clip(s.ctrl[a], s.actuator_ctrlrange[2 * a], s.actuator_ctrlrange[2 * a + 1]);
}
/// act_dot.
void ActivationRates(const Tables& t, Scratch& s);
/// mj_nextActivation.
inline Lane NextActivation(const Tables& t, const Actuator& actuator, const Scratch& s, Lane rate) {
  const Lane step = actuator.dynamics == Dynamics::kFilterExact
                        ? rate * actuator.time_constant * actuator.share
                        : rate * t.timestep;
  const Lane next = s.act[actuator.act] + step;
  if (!actuator.clamp_act) return next;
  return Clip(next, Splat(actuator.act_range[0]), Splat(actuator.act_range[1]));
}
/// act of the step's end.
void AdvanceActivations(const Tables& t, Scratch& s, const Lane* rates);
/// The input of an actuator, which its gain multiplies: its control or activation.
inline Lane ActuatorInput(const Tables& t, const Actuator& actuator, const Scratch& s, int a) {
  if (actuator.dynamics == Dynamics::kNone) return ClampedControl(actuator, s, a);
  if (!actuator.act_early) return s.act[actuator.act];
  return NextActivation(t, actuator, s, s.act_dot[actuator.act]);
}
/// mj_transmission and mj_fwdActuation: actuator_*, moments, qfrc_actuator.
void Actuation(const Tables& t, Scratch& s);
/// mj_fwdAcceleration without applied forces: qfrc_smooth, qacc_smooth.
void SmoothAcceleration(const Tables& t, Scratch& s);
/// The same with applied forces: what SmoothAcceleration leaves out.
void AddAppliedForces(const Tables& t, Scratch& s);
/// The first half of mj_implicit: qDeriv, and H before it is factored.
void ImplicitMatrix(const Tables& t, Scratch& s);
/// mjd_freeMhat of free bodies without joints on them: free_matrix; their rows of H become M's.
void FreeBodyMatrices(const Tables& t, Scratch& s);
/// Puts such bodies' accelerations, by their matrices, into acc.
void FreeBodyAccelerations(const Tables& t, Scratch& s);
/// mj_makeConstraint, mj_referenceConstraint and mj_fwdConstraint by MuJoCo, in place of MakeRows,
/// ReferenceAcceleration and the solvers: forces of rows, qfrc_constraint, qacc.
void AskForConstraints(const Tables& t, Scratch& s);
/// mj_fwdConstraint: the same.
void SolveNewton(const Tables& t, Scratch& s);
void SolvePGS(const Tables& t, Scratch& s);
/// mj_solNoSlip behind Newton: the same once more.
void RemoveSlip(const Tables& t, Scratch& s);

/// What a sensor's cutoff leaves of a number.
inline Lane CutOff(const Sensor& sensor, Lane x) {
  const double low = sensor.cuts_negative ? -sensor.cutoff : -__builtin_inf();
  return Clip(x, Splat(low), Splat(sensor.cutoff));
}
/// Those of range finders.
void CastRays(const Tables& t, Scratch& s);
/// mj_sensorPos, mj_sensorVel, mj_sensorAcc of the sensors in t.sensors, after an evaluation.
void ComputeSensors(const Tables& t, Scratch& s);

// ---- recorded as programs -----------------------------------------------------------------------

/// Kinematics and CentersOfMass.
void Places(const Tables& t, Scratch& s);
/// The stages after Angles that depend on neither contacts nor limits. As a program it needs
/// SpatialTendons before.
void SmoothDynamics(const Tables& t, Scratch& s);
/// Ma = M qacc.
void AccelerationProduct(const Tables& t, Scratch& s);
/// Mv = M search.
void SearchProduct(const Tables& t, Scratch& s);
/// acc = M⁻¹ qfrc_constraint.
void ConstraintAcceleration(const Tables& t, Scratch& s);
/// acc: the acceleration that Euler and implicitfast advance damped dofs with.
void DampedAcceleration(const Tables& t, Scratch& s);
/// sensordata of the sensors that IsOfMotion, from the fields of the evaluation, and cfrc_ext.
void SenseMotion(const Tables& t, Scratch& s);
/// Lanes in which a factored matrix has pivots below mjMINVAL, for which MuJoCo takes that, and
/// warns: masses that differ by far, forces that grow with velocity.
unsigned ReplacedPivots(const Lane* inverse_diagonal, int n);
/// The stage's program if it may run, else the stage.
void Run(RecordedStage stage, const Tables& t, Scratch& s);

// ---- together -----------------------------------------------------------------------------------

/// mj_forward. Unless `keep_fields`, straight-line code takes the place of stages if there is some;
/// then fields that later stages do not need are stale, and zeros of the others may have the other
/// sign.
void Evaluate(const Tables& t, Scratch& s, bool keep_fields);
/// mj_step; `keep_fields` and `sensors` of its evaluation.
void Step(const Tables& t, Scratch& s, bool keep_fields, bool sensors);
/// Integrates as mj_step does after mj_forward and its checks: mj_Euler, mj_implicit,
/// mj_RungeKutta.
void Integrate(const Tables& t, Scratch& s, bool keep_fields);
/// The fields of mj_step1 that IsRefreshed (lanes/fields.h) says.
void Refresh(const Tables& t, Scratch& s);
/// mj_rnePostConstraint's cfrc_ext.
void ExternalForces(const Tables& t, Scratch& s);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
