// Many environments on a pool of threads: reset, step, send and receive, rollout.
//
// Owns the environments' rows, random streams, step counts and flags (core/env_store.h); knows
// environments only through core/env.h. Results do not depend on the number of threads: an
// environment's results are a function of its own row, stream and action alone.
//
// Threads: any thread may call any method. Step, Reset, Rollout and the state accessors run one at
// a time; Send and Receive may run beside each other and beside them. The calling thread is worker
// 0.
//
// Errors: UsageError before anything has moved. An environment that throws keeps its row, stream
// and flags from before the call; failures are returned beside the others' results.
//
// Interruption: blocking calls poll `interrupted` a few dozen times a second and, when it returns
// true, stop within one environment step. See Outcome::interrupted.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/advance.h"
#include "core/buffers.h"
#include "core/env.h"
#include "core/env_store.h"
#include "core/errors.h"
#include "core/id_queue.h"
#include "core/rollout.h"
#include "core/thread_pool.h"

namespace pyfastenv {

struct VectorEnvOptions {
  int num_envs = 1;
  int num_threads = 1;  // the calling thread included
  AutoresetMode autoreset_mode = AutoresetMode::kNextStep;
  DType obs_dtype = DType::kFloat64;
  int max_episode_steps = 0;  // 0: episodes are never truncated
  std::string identity;       // id and arguments: snapshots of others are refused
};

struct Stats {
  int64_t steps = 0;
  int64_t episodes = 0;  // episodes that ended
  int64_t diverged = 0;
  int64_t failures = 0;
};

/// Observation and info of an episode's last step, kept in SAME_STEP mode.
struct FinalStep {
  int32_t env_id = 0;
  std::vector<double> obs;   // (obs_size)
  std::vector<double> info;  // (info_size)
  uint8_t kind = kNoInfo;    // which of the info's fields are there
};

class VectorEnv {
 public:
  using Interrupted = std::function<bool()>;
  using MakeEnvironment = std::function<std::unique_ptr<Environment>()>;

  struct Outcome {
    std::vector<EnvFailure> failures;
    std::vector<std::unique_ptr<FinalStep>> finals;  // of results whose kind has kFinal, in order
    bool interrupted = false;  // these environments must be reset before they step on
  };

  /// Entropy of new random streams as little-endian 32-bit words, one per id in the same call;
  /// where it is empty the stream goes on.
  using Seeds = std::span<const std::vector<uint32_t>>;

  VectorEnv(const MakeEnvironment& make, const VectorEnvOptions& options);
  ~VectorEnv();
  VectorEnv(const VectorEnv&) = delete;
  VectorEnv& operator=(const VectorEnv&) = delete;

  const EnvSpec& spec() const { return spec_; }
  const VectorEnvOptions& options() const { return options_; }
  int num_envs() const { return options_.num_envs; }
  int num_threads() const { return num_threads_; }
  size_t obs_bytes() const { return store_.obs_bytes(); }

  /// Gives all environments their first streams.
  void Seed(Seeds seeds);

  /// Resets environments; slot = environment id, other slots are not touched. No environment may be
  /// under way. `seeds` is empty or has one entry per id.
  Outcome Reset(std::span<const int32_t> ids, Seeds seeds, std::span<const double> reset_options,
                const OutputViews& out, const Interrupted& interrupted);

  /// Steps all environments; slot = environment id.
  Outcome Step(const ActionViews& actions, const OutputViews& out, const Interrupted& interrupted);

  struct RolloutOutcome {
    std::vector<EpisodeEnd> episodes;  // by step and environment
    std::vector<EnvFailure> failures;  // they stopped before the step that failed
    bool interrupted = false;          // all environments must be reset before they step on
  };

  /// Runs every environment for `num_steps` with actions of its policy.
  RolloutOutcome RunRollout(const Rollout::Request& request, const Interrupted& interrupted);

  /// Queues a step (or a reset) of each of `ids`, in any order; copies the actions.
  void Send(std::span<const int32_t> ids, const ActionViews& actions);
  void SendReset(std::span<const int32_t> ids, Seeds seeds, std::span<const double> reset_options);

  struct Ready {
    std::vector<int32_t> ids;  // in order of arrival
    std::vector<EnvFailure> failures;
    DType action_dtype = DType::kFloat32;  // that of the actions; float64 where they differ
    bool interrupted = false;  // nothing was taken; everything is still there for the next call
  };

  /// Waits until `min_envs` results are there (0: all that are under way), or at least one after
  /// `timeout_seconds`, and takes them, `max_envs` (0: no limit) at the most. The caller must
  /// Gather the ids next; until then they count as under way.
  Ready Wait(int min_envs, int max_envs, std::optional<double> timeout_seconds,
             const Interrupted& interrupted);

  /// Writes slot i of `out` for ids[i], makes these environments free for the next request and
  /// returns the final steps of results whose kind has kFinal, in order.
  std::vector<std::unique_ptr<FinalStep>> Gather(std::span<const int32_t> ids,
                                                 const OutputViews& out);

  /// Copies the latest observation of every environment, (num_envs, obs_size).
  void CopyObservations(void* obs);

  /// Bytes of one environment's snapshot at this moment; it grows with AddField.
  size_t state_bytes() const { return state_bytes_.load(); }
  /// Writes snapshots one after the other. Returns false, and writes nothing, if `states` is not of
  /// their size (ids.size() * state_bytes()): a field has been added since it was allocated, so
  /// allocate and call again.
  [[nodiscard]] bool GetState(std::span<const int32_t> ids, std::span<uint8_t> states);
  /// Throws UsageError if `states` is not of that size.
  void SetState(std::span<const int32_t> ids, std::span<const uint8_t> states);

  /// Writes the task section of the rows: (ids, spec().task_size()).
  void SetTasks(std::span<const int32_t> ids, const double* tasks);
  void GetTasks(std::span<const int32_t> ids, double* tasks);

  /// Throws UsageError unless these environments exist, are given once and are not under way.
  void CheckUsable(std::span<const int32_t> ids, const char* what);

  /// Gives every environment its own copy of a model field (once; later calls find it again).
  /// Throws std::invalid_argument for an unknown name.
  /// If it throws, nothing has changed.
  RowField AddField(const std::string& name);
  /// The same without adding it, and then without an offset.
  RowField DescribeField(const std::string& name);
  void SetField(const RowField& field, std::span<const int32_t> ids, const double* values);
  /// All environments' values, (num_envs, field's size): the model's if it has not been added.
  std::vector<double> GetField(const std::string& name);

  /// An environment's row and the fields added to it, for rendering.
  struct RowCopy {
    std::vector<double> values;
    std::vector<RowField> fields;
  };
  RowCopy CopyRow(int32_t id);
  std::array<uint64_t, 4> RandomState(int32_t id);

  Stats stats() const;

  /// Waits for running steps, drops queued ones and ends the threads. Idempotent.
  void Close();
  bool closed() const { return closed_.load(); }

 private:
  enum class Request : uint8_t { kStep, kReset };

  struct alignas(64) Worker {
    std::vector<double> info;
    std::vector<double> obs;
    // chunks left of its share of the batch; release by the caller, acquire by claimers
    std::atomic<int32_t> unclaimed{0};
    // written by one worker, read by any thread
    std::atomic<int64_t> steps{0}, episodes{0}, diverged{0}, failures{0};
  };

  // the barrier batch being worked on; written while nothing is unclaimed, read after
  // claiming
  struct Batch {
    Request request = Request::kStep;
    std::span<const int32_t> ids;  // empty: all
    Seeds seeds;                   // empty: streams go on
    ActionViews actions;
    std::span<const double> reset_options;
    const OutputViews* out = nullptr;
    int size = 0;
    int chunk = 1;       // items claimed at a time
    int num_chunks = 0;  // of all shares
    bool timed = false;  // workers note what each environment cost
  };

  class Exclusive;  // RAII: a call that is worker 0 and may use the rows
  class Call;       // RAII: counts a call as running; refuses closed, forked and re-entrant ones

  void Work(int worker);
  bool RunChunk(int worker);
  void NoteCost(double seconds, size_t num_steps);
  /// How many steps are long against a claim and short against the tail.
  size_t CheapChunk() const;
  bool RunQueued(int worker, size_t max);
  bool RunRolling(int worker);
  // one environment's part of a call
  struct Job {
    Request request;
    int32_t id;
    Action action;
    const std::vector<uint32_t>* seed;  // null or empty: the stream goes on
    std::span<const double> reset_options;
  };
  void RunAndCatch(int worker, const Job& job, const OutputViews& out,
                   std::vector<EnvFailure>& failures);
  void RunOne(int worker, const Job& job, const OutputViews& out);
  void StoreObservation(Worker& scratch, Environment& env, int32_t id);
  void WriteInfo(const OutputViews& out, int32_t id, const double* info, uint8_t kind) const;

  Outcome RunBatch(const Batch& batch, const Interrupted& interrupted);
  void Enqueue(std::span<const int32_t> ids, Request request, const ActionViews* actions,
               Seeds seeds, std::span<const double> reset_options);
  /// The items of a batch that are first a worker's own: begin and end.
  std::pair<int, int> ShareOf(int worker, int batch_size) const;
  int ChunksOf(int share) const;
  bool RunChunkOf(int worker, int share);
  std::span<const int32_t> ExpensiveFirst();
  void CheckIds(std::span<const int32_t> ids) const;
  void CheckFree(std::span<const int32_t> ids, const char* what);
  static void CheckReset(const char* what, const std::vector<int32_t>& unreset);

  VectorEnvOptions options_;
  int num_threads_;
  std::vector<std::unique_ptr<Environment>> envs_;  // one per worker
  const EnvSpec spec_;
  std::vector<Worker> workers_;

  EnvStore store_;
  std::atomic<size_t> state_bytes_;  // of store_'s layout; read without a lock
  EpisodeRules rules_;
  std::vector<std::unique_ptr<FinalStep>> finals_;  // per environment; empty unless SAME_STEP

  std::atomic<double> step_seconds_{0.0};  // running estimate of one environment's step; a hint

  // barrier batches
  std::mutex caller_mutex_;  // held by whoever is worker 0
  std::mutex rows_mutex_;    // held while rows are in use without being busy; after caller_mutex_
  Batch batch_;
  std::atomic<int32_t> finished_{0};  // chunks; release by workers, acquire by the caller
  std::vector<float> cost_;           // seconds of each environment's latest timed step
  std::vector<int32_t> order_;        // ids, the most expensive of each share first

  // the rollout being run, which workers that are late may still look at
  std::shared_ptr<Rollout> rollout_;  // guarded by rollout_mutex_
  std::mutex rollout_mutex_;
  std::atomic<bool> rolling_{false};  // a hint that spares idle helpers the lock

  // asynchronous requests; everything here is guarded by queue_mutex_ unless said otherwise
  struct AsyncStore;
  std::mutex queue_mutex_;
  // on the heap: a forked child cannot destroy it while a thread of its parent was asleep on it
  std::unique_ptr<std::condition_variable> results_changed_;
  std::unique_ptr<AsyncStore> async_;  // made by the first Send
  std::vector<uint8_t> busy_;
  std::atomic<int> in_flight_{0};  // sent and not yet gathered; written under the lock
  std::atomic<int> queued_{0};     // a hint that spares idle helpers the lock
  std::atomic<int> arrived_{0};    // results waiting; lets a receiver spin without the lock
  int receivers_ = 0;              // asleep on results_changed_
  int pending_ = 0;                // sent and not yet taken by Wait

  std::mutex failures_mutex_;
  std::vector<EnvFailure> failures_;        // of the barrier batch
  std::vector<EnvFailure> async_failures_;  // of requests whose results have not been received

  std::atomic<bool> closed_{false};
  std::mutex calls_mutex_;
  std::unique_ptr<std::condition_variable> calls_changed_;  // see results_changed_
  std::mutex close_mutex_;
  std::vector<std::thread::id> calls_;  // threads inside a call
  unsigned fork_generation_;

  std::unique_ptr<ThreadPool> pool_;  // last: its threads use everything above
};

}  // namespace pyfastenv
