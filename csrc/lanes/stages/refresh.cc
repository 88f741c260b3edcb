// Where everything is in a state, and how fast, without its forces.
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void Refresh(const Tables& t, Scratch& s) {
  Angles(t, s);
  Places(t, s);
  FixedTendons(t, s);
  SpatialTendons(t, s);
  TendonVelocities(t, s);
  Velocities(t, s);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
