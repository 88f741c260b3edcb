// Parts of a step whose time can be counted (bench/cpp/lanes.cc).
#pragma once

#include <cstdint>

namespace pyfastenv::lanes {

enum class Phase {
  kSmooth,  // kinematics to the unconstrained acceleration
  kCollision,
  kRows,  // limits' and contacts' rows, with reference accelerations
  kSolver,
  kIntegration,  // and checks of numbers
  kCount,
};

/// Ticks of the processor's clock by phase. Whoever steps adds to `ticks`; `last` is its own.
struct PhaseTicks {
  uint64_t ticks[static_cast<int>(Phase::kCount)] = {};
  uint64_t last = 0;
};

/// The processor's clock; 0 where it is not x86-64.
inline uint64_t Ticks() {
#ifdef __x86_64__
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

}  // namespace pyfastenv::lanes
