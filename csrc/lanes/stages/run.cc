// Recorded stages, as programs or by themselves.
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void Run(RecordedStage stage, const Tables& t, Scratch& s) {
  if (s.has_programs) {
    t.programs[static_cast<int>(stage)](&s);
    return;
  }
  switch (stage) {
    case RecordedStage::kPlaces:
      return Places(t, s);
    case RecordedStage::kSmoothDynamics:
      return SmoothDynamics(t, s);
    case RecordedStage::kAccelerationProduct:
      return AccelerationProduct(t, s);
    case RecordedStage::kSearchProduct:
      return SearchProduct(t, s);
    case RecordedStage::kConstraintAcceleration:
      return ConstraintAcceleration(t, s);
    case RecordedStage::kDampedAcceleration:
      return DampedAcceleration(t, s);
    case RecordedStage::kSensors:
      return SenseMotion(t, s);
    case RecordedStage::kCount:
      return;
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
