// What was sent and has not been received: requests to run, their payload, results that wait.
//
// It runs no environment: workers take requests and put results. An environment is *under way* from
// Push until its results are released.
//
// Threads: any, for every method. Requests and results have a lock each, so that senders and
// receivers do not wait for each other. A push is all or nothing: when memory runs out, nothing was
// sent. Results that a receiver could not use (Received is destroyed without Release) go back.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/barrier_batch.h"
#include "core/buffers.h"
#include "core/cache_line.h"
#include "core/call_gate.h"
#include "core/env.h"
#include "core/env_runner.h"
#include "core/failure_list.h"
#include "core/id_queue.h"

namespace pyfastenv {

class RequestQueue {
 public:
  /// Entropy of new random streams as little-endian 32-bit words, one per id in the same call;
  /// where it is empty the stream goes on.
  using Seeds = std::span<const std::vector<uint32_t>>;

  struct Requests {
    Job::Kind kind = Job::Kind::kStep;
    std::span<const int32_t> ids;           // all different
    ActionViews actions;                    // of steps, one per id; copied
    Seeds seeds;                            // of resets; empty: streams go on
    std::span<const double> reset_options;  // of resets
  };

  /// Results taken by a receiver, which it must Release; if it does not, they wait for the next.
  class Received {
   public:
    Received() = default;
    Received(Received&& other) noexcept { *this = std::move(other); }
    Received& operator=(Received&& other) noexcept;
    ~Received();

    std::vector<int32_t> ids;              // in order of arrival
    std::vector<EnvFailure> failures;      // environments that raised: they have no results
    DType action_dtype = DType::kFloat32;  // that of the actions; float64 where they differ
    bool interrupted = false;  // nothing was taken; everything is still there for the next call

   private:
    friend class RequestQueue;
    RequestQueue* queue_ = nullptr;  // until they are released
  };

  RequestQueue(int num_envs, const EnvSpec& spec);
  ~RequestQueue();

  bool idle() const { return under_way_.load(std::memory_order_acquire) == 0; }
  /// Those under way, of `ids` or (empty) of all.
  std::vector<int32_t> UnderWay(std::span<const int32_t> ids) const;

  /// How many requests wait to be run; a hint.
  int num_requests() const { return num_requests_.load(std::memory_order_relaxed); }

  /// The caller has the rows' seat and has checked that none of the ids is under way.
  void Push(const Requests& requests);

  // ---- workers ----

  /// Takes one of `parts` parts of the requests that wait, oldest first, but at least `least` (if
  /// there are so many) and at most `max`.
  int TakeRequests(int parts, int least, int max, int32_t* ids);
  /// Puts back requests that were taken and not run; false if the queue has been cleared.
  bool PutBack(std::span<const int32_t> ids);
  /// The job and where its results go: valid while the request is held.
  Job JobOf(int32_t id) const;
  const OutputViews& outputs() const;
  FailureList& failures() { return failures_; }
  /// These have been run.
  void PutResults(std::span<const int32_t> ids);

  // ---- receivers ----

  struct Wanted {
    int min_envs = 0;  // 0: all that are under way
    int max_envs = 0;  // 0: no limit
    std::optional<double> timeout_seconds;
  };
  /// Runs some requests if it can, only one if in a `hurry`; false if there was none to run.
  using Help = std::function<bool(bool hurry)>;

  /// Waits until `min_envs` results are there, or at least one after the timeout, and takes them.
  /// Throws UsageError (kNothingPending, kClosed).
  Received Receive(const Wanted& wanted, const CallGate& gate, const Help& help,
                   const Interrupted& interrupted);
  /// The environments are free for the next request.
  void Release(Received& received);

  // ---- closing ----

  /// Forgets the requests that nobody has taken and wakes the receivers.
  void Clear();
  /// In a forked child: leaks what a thread of the parent may have been asleep on.
  void Abandon() { (void)results_changed_.release(); }  // NOLINT(bugprone-unused-return-value)

 private:
  using Clock = std::chrono::steady_clock;

  // What a request needs and leaves while its environment is under way, one slot per environment.
  struct Slots;

  void PopResults(Received& received);
  void ReadOutcomes(Received& received);
  void ReturnUnused(Received& received) noexcept;

  const int num_envs_;
  const EnvSpec& spec_;

  std::vector<std::atomic<uint8_t>> is_under_way_;  // written with the rows' seat, or by Release
  alignas(kCacheLine) std::atomic<int> under_way_{0};
  std::unique_ptr<Slots> slots_;  // made by the first Push, never replaced
  FailureList failures_;

  alignas(kCacheLine) std::mutex requests_mutex_;  // guards the next two
  IdQueue requests_;
  bool cleared_ = false;
  std::atomic<int> num_requests_{0};  // written under the lock

  alignas(kCacheLine) std::mutex results_mutex_;  // guards the next three
  IdQueue results_;
  int pending_ = 0;                  // sent and not yet taken by Receive
  int receivers_ = 0;                // asleep on results_changed_
  std::atomic<int> num_results_{0};  // written under the lock; lets a receiver spin without it
  // on the heap: a forked child cannot destroy it while a thread of its parent was asleep on it
  std::unique_ptr<std::condition_variable> results_changed_ =
      std::make_unique<std::condition_variable>();
};

}  // namespace pyfastenv
