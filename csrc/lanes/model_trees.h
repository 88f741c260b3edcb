// Which dofs and trees of a model move with a body or a tendon, as bits.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <vector>

namespace pyfastenv::lanes {

/// The last dof of a body, or of its nearest ancestor that has one; -1 if none.
int LastDof(const mjModel& m, int body);
/// In their order.
std::vector<int> DofsThatMove(const mjModel& m, int body);
/// Bits of dofs, of which a model has fewer than 64.
uint64_t MaskOf(const std::vector<int>& dofs);
/// The tree that a body belongs to; none for what is fixed. Of many trees, several have one bit.
uint64_t TreeOf(const mjModel& m, int body);
/// The trees that a tendon may move: those of a fixed one's coefficients but 0, or, where
/// environments have `own_coefficients`, of all.
uint64_t TreesOfTendon(const mjModel& m, int tendon, bool own_coefficients);

}  // namespace pyfastenv::lanes
