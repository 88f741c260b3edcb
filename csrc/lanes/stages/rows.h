// What rows of all constraints are made with: softness, impedance, regularization.
#pragma once

#include "lanes/stages/scratch.h"
#include "lanes/stages/spatial.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// Softness in lanes, as lanes' constraints may differ.
class LaneSoftness {
 public:
  Lane d0, dwidth, width, midpoint, rise, fall, power, stiffness, damping;

  /// From each lane's index of Scratch::softness.
  LaneSoftness(const Lane* softness, const int* index);
};

/// solimp's sigmoid of the violation.
Lane Impedance(const LaneSoftness& soft, Lane violation);
Lane Regularizer(Lane impedance, Lane inverse_weight);

/// Bits of lanes.
inline unsigned LanesWithMoreThan(const int* count, int k) {
  unsigned bits = 0;
  for (int l = 0; l < kWidth; ++l) bits |= static_cast<unsigned>(k < count[l]) << l;
  return bits;
}

/// Rows of contacts, behind those that are there; they complete contacts' frames.
void AddContactRows(const Tables& t, Scratch& s);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
