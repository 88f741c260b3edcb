// Whether lanes are worth their time: where nearly every step is left to mj_step (piles of more
// contacts than lanes hold, say), they are not tried for a while, so that they cost next to nothing.
//
// No result depends on it. One per worker; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pyfastenv {

class MissRecord {
 public:
  /// Whether the next `steps` steps are to be tried.
  bool Tries(int steps) {
    if (pause_left_ <= 0) return true;
    pause_left_ -= steps;
    return false;
  }

  /// Of `steps` that were tried, so many were left to mj_step.
  void Count(int steps, int missed) {
    steps_ += steps;
    missed_ += missed;
    if (steps_ < kWindow) return;
    const bool in_vain = 4 * missed_ > 3 * steps_;
    pause_left_ = in_vain ? next_pause_ : 0;
    next_pause_ = in_vain ? std::min(2 * next_pause_, kLongestPause) : kShortestPause;
    steps_ = missed_ = 0;
  }

  // in environment steps; a pause is long beside the window, and short beside a training
  static constexpr int64_t kWindow = 64;
  static constexpr int64_t kShortestPause = 2048;
  static constexpr int64_t kLongestPause = 65536;

 private:
  int64_t steps_ = 0, missed_ = 0;  // in the present window
  int64_t pause_left_ = 0;
  int64_t next_pause_ = kShortestPause;
};

}  // namespace pyfastenv
