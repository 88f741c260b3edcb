// Whether the workers of one call should stop: asked of the caller's side, seen by all.
#pragma once

#include <atomic>
#include <chrono>

#include "core/barrier_batch.h"
#include "core/polling.h"

namespace pyfastenv::physics {

class StopSignal {
 public:
  explicit StopSignal(const Interrupted& interrupted) : interrupted_(interrupted) {}

  /// Any thread. relaxed: nothing is handed over with it.
  bool raised() const { return raised_.load(std::memory_order_relaxed); }

  /// Asks now. The calling thread only.
  bool Ask() {
    if (!raised() && interrupted_()) raised_.store(true, std::memory_order_relaxed);
    return raised();
  }

  /// Asks if it is time to. The calling thread only.
  bool Poll() {
    const auto now = Clock::now();
    if (now < next_) return raised();
    next_ = now + kPollInterval;
    return Ask();
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Interrupted& interrupted_;
  std::atomic<bool> raised_{false};
  Clock::time_point next_ = Clock::now() + kPollInterval;
};

}  // namespace pyfastenv::physics
