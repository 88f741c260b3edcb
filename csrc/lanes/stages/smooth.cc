// Everything of a step that depends on neither contacts nor limits.
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void Places(const Tables& t, Scratch& s) {
  Kinematics(t, s);
  CentersOfMass(t, s);
}

void SmoothDynamics(const Tables& t, Scratch& s) {
  Places(t, s);
  FixedTendons(t, s);
#ifndef PYFASTENV_RECORD
  SpatialTendons(t, s);
#endif
  InertiaMatrix(t, s);
  TendonVelocities(t, s);
  Velocities(t, s);
  PassiveForces(t, s);
  BiasForces(t, s);
  Actuation(t, s);
  SmoothAcceleration(t, s);
  if (t.integrator != Integrator::kImplicitFast) return;
  ImplicitMatrix(t, s);
  FreeBodyMatrices(t, s);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
