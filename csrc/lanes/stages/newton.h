// The Newton solver on one tree, and by islands of trees that constraints connect.
#pragma once

#include "lanes/stages/scratch.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// Where the solver starts: qacc is in each lane the better of the last step's acceleration and
/// that without constraints, and this on dofs that are not constrained; Ma = M qacc on those that
/// are. `constrained`: of each dof, bits of lanes.
void ChooseStart(const Tables& t, Scratch& s, const unsigned* constrained);
/// Minimizes over all dofs, from qacc and Ma.
void SolveFromStart(const Tables& t, Scratch& s);
/// Both, where all rows are of the tree with the dofs [first, first + n).
void SolveOneTree(const Tables& t, Scratch& s, int first, int n);
/// Both, where trees may be connected, in each lane otherwise.
void SolveIslands(const Tables& t, Scratch& s);
/// The islands of one lane, as bits of their trees; returns how many. At most kMaxDofs.
int IslandsOfLane(const Rows& rows, int lane, uint64_t* trees);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
