// Which dofs and trees of a model move with a body or a tendon, as bits.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>

namespace pyfastenv::lanes {

/// The last dof of a body, or of its nearest ancestor that has one; -1 if none.
int LastDof(const mjModel& m, int body);
uint64_t DofsThatMove(const mjModel& m, int body);
/// The tree that a body belongs to; none for what is fixed.
uint64_t TreeOf(const mjModel& m, int body);
/// The trees along a tendon.
uint64_t TreesOfTendon(const mjModel& m, int tendon);

}  // namespace pyfastenv::lanes
