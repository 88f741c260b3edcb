// Runs one environment's part of a call on a worker: load the row, step or reset, write the
// outputs, save the row.
//
// Owns the workers' environment objects and their scratch memory. An environment's own data (row,
// streams, counters, latest observation) changes only once nothing can throw any more: one that
// raises is as it was before the call.
//
// Threads: one per worker at a time, each with its own number; one at a time per environment id.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/advance.h"
#include "core/buffers.h"
#include "core/cache_line.h"
#include "core/env.h"
#include "core/env_store.h"
#include "core/failure_list.h"
#include "core/frame_source.h"
#include "core/group_order.h"

namespace pyfastenv {

/// Since the vector environment was made.
struct Stats {
  int64_t steps = 0;
  int64_t episodes = 0;  // episodes that ended
  int64_t diverged = 0;
  int64_t failures = 0;

  void Add(const Stats& other) {
    steps += other.steps;
    episodes += other.episodes;
    diverged += other.diverged;
    failures += other.failures;
  }
};

/// Observation and info of an episode's last step, kept in SAME_STEP mode.
struct FinalStep {
  int32_t env_id = 0;
  std::vector<uint8_t> obs;  // as the store keeps it
  std::vector<double> info;  // (info_size)
  uint8_t kind = kNoInfo;    // which of the info's fields are there
};

using MakeEnvironment = std::function<std::unique_ptr<Environment>()>;

/// One environment's part of a call.
struct Job {
  enum class Kind : uint8_t { kStep, kReset };

  Kind kind = Kind::kStep;
  int32_t id = 0;
  Action action;                                // of a step
  const std::vector<uint32_t>* seed = nullptr;  // null or empty: the stream goes on
  std::span<const double> reset_options;        // of a reset
};

class EnvRunner {
 public:
  /// `make_frames`: for observations with pictures, else null.
  EnvRunner(const MakeEnvironment& make, const MakeFrameSource& make_frames, int num_workers);

  const EnvSpec& spec() const { return spec_; }
  Environment& environment(int worker) { return *envs_[static_cast<size_t>(worker)]; }

  /// Gets all workers ready for rows of this layout; as Environment::Prepare.
  void Prepare(const RowLayout& layout);
  /// From now on rows are of the layout last prepared for.
  void Adopt(const RowLayout& layout) noexcept;

  /// To be called before the first Run.
  void Attach(EnvStore* store, const EpisodeRules* rules);

  /// Environments that a worker runs together; it changes while none is under way.
  int group_size() const { return std::max(envs_[0]->group_size(), 1); }
  /// Whether steps are worth preparing.
  bool prepares() const { return envs_[0]->group_size() > 0; }
  /// The engine that runs the physics, and all workers' counts together.
  EngineReport engine() const;

  /// Runs the job, writes slot job.id of `out` (zeros and kFailed if it raised).
  void Run(int worker, const Job& job, const OutputViews& out, FailureList& failures) noexcept;
  /// The same for up to kMaxGroup jobs, whose steps are prepared together. `order`, if there is
  /// one, learns what their physics was like.
  void RunGroup(int worker, std::span<const Job> jobs, const OutputViews& out,
                FailureList& failures, GroupOrder* order = nullptr) noexcept;
  static constexpr int kMaxGroup = Environment::kMaxGroup;

  /// The final steps of environments whose latest result has kFinal, in the order of `ids`.
  std::vector<std::unique_ptr<FinalStep>> TakeFinals(std::span<const int32_t> ids,
                                                     const uint8_t* kinds);

  void Count(int worker, const Stats& more);
  Stats stats() const;

 private:
  struct alignas(kCacheLine) Worker {
    std::vector<double> info;
    std::vector<double> obs;
    std::vector<double> row;     // that is drawn
    std::vector<uint8_t> frame;  // drawn of it
    // written by this worker, read by any thread
    std::atomic<int64_t> steps{0}, episodes{0}, diverged{0}, failures{0};
  };

  void RunOrThrow(int worker, const Job& job, const OutputViews& out);
  // All of an observation that may throw: the worker's numbers, and its frame where one is due.
  void Observe(int worker, int elapsed);
  // Writes what Observe has seen over an observation, whose older frames stay.
  void StoreObs(const Worker& worker, int elapsed, uint8_t* obs) const noexcept;
  void WriteFailed(int32_t id, const OutputViews& out) noexcept;
  void WriteInfo(const OutputViews& out, int32_t id, const double* info, uint8_t kind) const;

  std::vector<std::unique_ptr<Environment>> envs_;    // one per worker
  std::vector<std::unique_ptr<FrameSource>> frames_;  // likewise, or empty
  const EnvSpec spec_;                                // immutable: read by any thread
  std::vector<Worker> workers_;
  EnvStore* store_ = nullptr;
  const EpisodeRules* rules_ = nullptr;
  std::vector<std::unique_ptr<FinalStep>> finals_;  // per environment; empty unless SAME_STEP
};

}  // namespace pyfastenv
