// Threads that wait for each other, often and for a very short time.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/cache_line.h"
#include "core/thread_pool.h"

namespace pyfastenv {

class SpinBarrier {
 public:
  /// While nobody waits.
  void set_num_threads(int num_threads) { num_threads_ = num_threads; }

  /// Returns when all threads have called it; what they wrote before can be read after.
  void Wait() {
    const uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    SpinUntil([&] { return round_.load(std::memory_order_acquire) != round; });
  }

 private:
  int num_threads_ = 1;
  alignas(kCacheLine) std::atomic<int> arrived_{0};
  alignas(kCacheLine) std::atomic<uint32_t> round_{0};
};

}  // namespace pyfastenv
