// Helper threads that run one function whenever they are woken.
//
// The pool knows nothing of the work: `work(worker)` looks for something to do, does all it finds
// and returns; it must not throw. Helpers are numbered 1 … num_threads - 1. Worker 0 is the calling
// thread, which runs the same function itself, so a pool of one thread has no helper at all.
//
// Wake() guarantees that every helper runs `work` at least once after it, entirely. An idle helper
// spins for set_spin(), by default long enough to catch the next call of a busy loop, and then
// parks in the kernel, where it costs nothing. Wake may be called from any thread. The
// destructor waits for running work to return.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace pyfastenv {

/// Tells the processor that this is a spin loop.
inline void CpuRelax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

class ThreadPool {
 public:
  // Long enough for the Python between two steps, short enough not to fight PyTorch's threads.
  static constexpr std::chrono::nanoseconds kDefaultSpin = std::chrono::microseconds(40);

  ThreadPool(int num_threads, std::function<void(int)> work);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(helpers_.size()) + 1; }

  void Wake();

  /// How long idle helpers spin before they park; about what is left for others of a job in hand.
  void set_spin(std::chrono::nanoseconds spin) {
    spin_ns_.store(spin.count(), std::memory_order_relaxed);
  }

  /// Forgets the helpers without joining them: in a forked child they do not exist.
  void Abandon();

 private:
  void Loop(int worker);

  std::function<void(int)> work_;
  std::atomic<uint32_t> epoch_{0};  // release in Wake pairs with acquire in Loop
  std::atomic<int> parked_{0};      // helpers in the kernel; seq_cst with epoch_ (see Wake)
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> spin_ns_{kDefaultSpin.count()};
  std::vector<std::thread> helpers_;
};

}  // namespace pyfastenv
