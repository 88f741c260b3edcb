// Helper threads that run one function whenever they are woken.
//
// The pool knows nothing of the work: `work(worker)` looks for something to do, does all it finds
// and returns; it must not throw. Helpers are numbered 1 … num_threads - 1. Worker 0 is the calling
// thread, which runs the same function itself, so a pool of one thread has no helper at all.
//
// Wake(n) guarantees that the first n helpers run `work` at least once after it, entirely. It wakes
// one of them; each wakes two more, so a call costs the same with 64 threads as with 2. An idle
// helper spins for set_spin(), by default long enough to catch the next call of a busy loop, and
// then parks in the kernel, where it costs nothing. Wake may be called from any thread.
//
// A helper that is late from an earlier Wake may be in `work` before it has seen the next one, and
// wakes the others only after it. Where `work` waits for other helpers they would wait for each
// other for ever: WakeEach has the caller wake them all.
//
// Helpers compute in the default mode of floating-point numbers (float_mode.h); the calling thread
// sees to itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "core/cache_line.h"

namespace pyfastenv {

/// Tells the processor that this is a spin loop.
inline void CpuRelax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Waits for what other threads do in microseconds. One that is missing for longer may wait for our
/// processor: then it gets it.
template <typename Done>
void SpinUntil(const Done& done) {
  constexpr int kSpins = 2000;
  for (int i = 0; !done(); ++i) {
    if (i < kSpins) {
      CpuRelax();
    } else {
      std::this_thread::yield();
    }
  }
}

class ThreadPool {
 public:
  // Long enough for the Python between two steps, short enough not to fight PyTorch's threads.
  static constexpr std::chrono::nanoseconds kDefaultSpin = std::chrono::microseconds(40);

  ThreadPool(int num_threads, std::function<void(int)> work);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_helpers_ + 1; }

  /// `helpers` may be more than there are.
  void Wake(int helpers);
  void WakeAll() { Wake(num_helpers_); }
  /// As Wake, for work in which helpers wait for each other.
  void WakeEach(int helpers);

  /// How long idle helpers spin before they park; about what is left for others of a job in hand.
  void set_spin(std::chrono::nanoseconds spin) {
    spin_ns_.store(spin.count(), std::memory_order_relaxed);
  }

  /// Waits for running work to return and ends the helpers. Wake may still be called: the pool is
  /// there as long as its work, which may reach it through a pointer that is not to change. In a
  /// forked child the helpers do not exist: they are forgotten.
  void Stop();

 private:
  struct alignas(kCacheLine) Helper {
    std::atomic<uint32_t> epoch{0};  // counts signals; seq_cst with parked (see Signal)
    std::atomic<bool> parked{false};
    // how many helpers its latest signals were meant for; acq_rel in Signal, acquire in Loop
    std::atomic<int> meant_for{0};
    std::thread thread;
  };

  Helper& helper(int worker) { return helpers_[static_cast<size_t>(worker - 1)]; }
  void Signal(int worker, int meant_for);
  void Loop(int worker);
  void Abandon();

  std::function<void(int)> work_;
  unsigned fork_generation_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> spin_ns_{kDefaultSpin.count()};
  int num_helpers_;
  std::unique_ptr<Helper[]> helpers_;
};

}  // namespace pyfastenv
