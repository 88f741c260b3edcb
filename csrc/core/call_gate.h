// Who may call a vector environment, or another pool, now.
//
// Every call passes the gate and is counted while it runs. Refused, before anything has moved, are
// calls after Close (kClosed), in a forked child (kForked), and on a thread that is inside another
// call of the same object, i.e. from a signal handler (kBusy).
//
// There are two seats, so that a receiver that helps with the work does not block senders:
//   worker 0   the caller's own environment object; whoever has it may run environments
//   rows       the right to read and write rows, streams and flags of environments that are not
//              under way
// `Exclusive` has both, `RowsOnly` and `TryWorkerZero` one. Where both are taken, worker 0 is
// first.
//
// Within a call, its thread computes in the default mode of floating-point numbers (float_mode.h).
//
// Threads: any thread may pass. Close waits for the calls under way; it may be called from several
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "core/cache_line.h"
#include "core/float_mode.h"

namespace pyfastenv {

class CallGate {
 public:
  /// `object`: what messages call that which has the gate. A literal.
  explicit CallGate(const char* object = "vector environment");
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  /// A call under way, while it lives. Made and destroyed on the same thread, innermost first.
  class Pass {
   public:
    explicit Pass(CallGate& gate);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    friend class CallGate;
    CallGate& gate_;
    const Pass* outer_;  // this thread's enclosing pass, of any gate
    DefaultFloats floats_;
  };

  /// A call that has both seats: one at a time.
  class Exclusive {
   public:
    explicit Exclusive(CallGate& gate)
        : pass_(gate), worker_zero_(gate.worker_zero_), rows_(gate.rows_) {}

   private:
    Pass pass_;
    std::lock_guard<std::mutex> worker_zero_;
    std::lock_guard<std::mutex> rows_;
  };

  /// For as long as marking environments as under way takes; within a Pass.
  class RowsOnly {
   public:
    explicit RowsOnly(CallGate& gate) : rows_(gate.rows_) {}

   private:
    std::lock_guard<std::mutex> rows_;
  };

  /// The seat of worker 0 if it is free; within a Pass. `has()` tries again.
  class TryWorkerZero {
   public:
    explicit TryWorkerZero(CallGate& gate) : lock_(gate.worker_zero_, std::try_to_lock) {}
    bool has() { return lock_.owns_lock() || lock_.try_lock(); }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  bool closed() const { return closed_.load(std::memory_order_acquire); }
  bool forked() const;

  /// Refuses calls from now on, runs `wake` (which makes calls that wait return), waits until all
  /// are out, and runs `finish` once. In a forked child neither runs: there is nobody to wait for.
  /// Throws UsageError (kBusy) from inside a call of the same object.
  void Close(const std::function<void()>& wake, const std::function<void()>& finish);

 private:
  bool InsideOnThisThread() const;

  const char* const object_;
  const unsigned fork_generation_;
  std::atomic<bool> closed_{false};
  // calls under way; seq_cst with closed_: a call sees that it is closed, or Close sees the call
  alignas(kCacheLine) std::atomic<int> calls_{0};
  alignas(kCacheLine) std::mutex worker_zero_;
  alignas(kCacheLine) std::mutex rows_;
  std::mutex closing_;
  bool finished_ = false;  // guarded by closing_
};

}  // namespace pyfastenv
