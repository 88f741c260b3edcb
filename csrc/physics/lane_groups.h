// Into how many groups simulations of one model are divided that are to step in lanes.
#pragma once

#include <algorithm>

namespace pyfastenv::physics {

// Fewer simulations than this are no slower with mj_step: a group costs the same however many of
// its lanes are used, and that is 2.7 times mj_step for the most expensive robot (docs/lanes.md).
inline int FewestLanes(int width) { return width == 1 ? 1 : std::max(2, 3 * width / 8); }

/// Groups of about the same size for so many workers, none wider than `width`; 0 if lanes do not
/// pay for groups so small.
inline int CountLaneGroups(int count, int workers, int width) {
  const int rounds = (count + workers * width - 1) / (workers * width);
  const int groups = std::min(workers * rounds, count);
  return groups > 0 && count / groups >= FewestLanes(width) ? groups : 0;
}

}  // namespace pyfastenv::physics
