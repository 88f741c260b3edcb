// A running estimate of what one environment's step costs; a hint that any thread may read.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/cache_line.h"

namespace pyfastenv {

class alignas(kCacheLine) CostEstimate {
 public:
  using Clock = std::chrono::steady_clock;

  /// The estimated cost of one step; 0 while nothing is known.
  double seconds() const { return seconds_.load(std::memory_order_relaxed); }
  Clock::duration duration() const {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds()));
  }

  /// `num_steps` took the time since `start` on one thread.
  void Note(Clock::time_point start, int64_t num_steps) {
    if (num_steps <= 0) return;
    const double each = std::chrono::duration<double>(Clock::now() - start).count() /
                        static_cast<double>(num_steps);
    const double before = seconds();
    // the first estimate counts in full, later ones smooth out single slow calls
    seconds_.store(before == 0.0 ? each : 0.9 * before + 0.1 * each, std::memory_order_relaxed);
  }

  /// As many steps as take about `duration`, between `least` and `most`; `least` while nothing is
  /// known.
  int64_t StepsIn(double duration, int64_t least, int64_t most) const {
    const double each = seconds();
    if (each == 0.0) return least;
    return static_cast<int64_t>(
        std::clamp(duration / each, static_cast<double>(least), static_cast<double>(most)));
  }

 private:
  // several writers may lose each other's updates: it is a hint
  std::atomic<double> seconds_{0.0};
};

}  // namespace pyfastenv
