// One call's work on a pool, from handing it out to its last item: step, reset and rollout.
//
// The calling thread is worker 0 and does its share; helpers are woken if that is worth while. Run
// returns when every item is done with, or, once `interrupted` says so, when what was under way has
// come to its next boundary.
//
// Threads: one Run at a time. Helpers call RunSome whenever they are woken, in time or late.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "core/cache_line.h"
#include "core/thread_pool.h"
#include "core/work_shares.h"

namespace pyfastenv {

/// Asked a few dozen times a second by calls that wait; true: stop.
using Interrupted = std::function<bool()>;

class BarrierBatch {
 public:
  /// The work on the items of one call.
  class Work {
   public:
    virtual ~Work() = default;

    /// How many items a worker takes at a time, at most kMaxChunk.
    virtual int Chunk() const = 0;

    /// Runs items. Moves those that are to be taken again (by anyone) to the front and returns how
    /// many they are.
    virtual int Run(int worker, std::span<int32_t> items) noexcept = 0;
  };
  static constexpr int kMaxChunk = 64;

  struct Options {
    int count = 0;                     // of items: 0 … count - 1
    int helpers = 0;                   // to wake
    std::chrono::nanoseconds spin{0};  // how long threads that wait spin before they sleep
    bool gives_back = false;           // Run may return more than 0
    int first_chunk = 1;               // how many a caller without helpers tries first
  };

  BarrierBatch(ThreadPool& pool, int num_workers) : pool_(pool), shares_(num_workers) {}

  /// Returns false if it was interrupted: some items were not, or not entirely, run.
  bool Run(Work& work, const Options& options, const Interrupted& interrupted);

  /// A helper's part: runs items until none is left to take. Returns whether there was any.
  bool RunSome(int worker);

  /// The items that are first a worker's own.
  std::pair<int, int> ShareOf(int worker, int count) const {
    return shares_.ShareOf(worker, count);
  }

  /// In a forked child: leaks what a thread of the parent may have been asleep on.
  void Abandon() { (void)left_changed_.release(); }  // NOLINT(bugprone-unused-return-value)

 private:
  using Clock = std::chrono::steady_clock;

  bool RunAlone(Work& work, const Options& options, const Interrupted& interrupted);
  bool RunUntil(int worker, Clock::time_point until);
  void Finish(int items);
  bool AllDone() const { return left_.load(std::memory_order_acquire) == 0; }
  void AwaitAll(Clock::time_point spin_until, Clock::time_point wake_at);

  ThreadPool& pool_;
  WorkShares shares_;
  Work* work_ = nullptr;  // valid for whoever holds an item

  // items not done with; seq_cst with asleep_ (see Finish)
  alignas(kCacheLine) std::atomic<int> left_{0};
  alignas(kCacheLine) std::atomic<bool> asleep_{false};
  std::mutex left_mutex_;
  std::unique_ptr<std::condition_variable> left_changed_ =
      std::make_unique<std::condition_variable>();
};

}  // namespace pyfastenv
