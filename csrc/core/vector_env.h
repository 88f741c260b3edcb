// Many environments on a pool of threads: reset, step, send and receive, rollout.
//
// It composes: CallGate (who may call now), EnvStore (rows, streams, counters), EnvRunner (one
// environment's part of a call), BarrierBatch (step, reset and rollout) and RequestQueue (send and
// receive). It knows environments only through core/env.h. Results do not depend on the number of
// threads: an environment's results are a function of its own row, stream and action alone.
//
// Threads: any thread may call any method. Step, Reset, RunRollout and the state accessors run one
// at a time; Send and Receive may run beside each other and beside them. The calling thread is
// worker 0.
//
// Errors: UsageError before anything has moved. An environment that throws keeps its row, stream
// and flags from before the call; failures are returned beside the others' results.
//
// Interruption: blocking calls poll `interrupted`, which must not throw, a few dozen times a second
// and, when it returns true, stop within one environment step. See Outcome::interrupted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/advance.h"
#include "core/barrier_batch.h"
#include "core/buffers.h"
#include "core/call_gate.h"
#include "core/cost_estimate.h"
#include "core/cost_order.h"
#include "core/env.h"
#include "core/env_runner.h"
#include "core/env_store.h"
#include "core/errors.h"
#include "core/frame_source.h"
#include "core/group_order.h"
#include "core/grouping.h"
#include "core/obs_layout.h"
#include "core/request_queue.h"
#include "core/rollout.h"
#include "core/thread_pool.h"

namespace pyfastenv {

struct VectorEnvOptions {
  int num_envs = 1;
  int num_threads = 1;  // the calling thread included
  AutoresetMode autoreset_mode = AutoresetMode::kNextStep;
  DType obs_dtype = DType::kFloat64;
  // pictures as observations: what draws them, and whether the numbers come with them
  FrameStack frames = {};
  MakeFrameSource make_frames = nullptr;
  bool obs_numbers = true;
  int max_episode_steps = 0;  // 0: episodes are never truncated
  bool amended = false;       // returns are made of what Amend adds, not of steps' rewards
  std::string identity;       // id and arguments: snapshots of others are refused
};

class VectorEnv {
 public:
  using Seeds = RequestQueue::Seeds;
  using Received = RequestQueue::Received;

  struct Outcome {
    std::vector<EnvFailure> failures;
    std::vector<std::unique_ptr<FinalStep>> finals;  // of results whose kind has kFinal, in order
    bool interrupted = false;  // these environments must be reset before they step on
  };

  VectorEnv(const MakeEnvironment& make, const VectorEnvOptions& options);
  ~VectorEnv();
  VectorEnv(const VectorEnv&) = delete;
  VectorEnv& operator=(const VectorEnv&) = delete;

  const EnvSpec& spec() const { return runner_.spec(); }
  const VectorEnvOptions& options() const { return options_; }
  int num_envs() const { return options_.num_envs; }
  int num_threads() const { return num_threads_; }
  const ObsLayout& obs_layout() const { return store_.obs_layout(); }
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

  /// Waits until `min_envs` results are there (0: all that are under way), or at least one after
  /// `timeout_seconds`, and takes them, `max_envs` (0: no limit) at the most. The caller must
  /// Gather them next; until then they count as under way, and if it does not, they wait for the
  /// next Receive.
  Received Receive(const RequestQueue::Wanted& wanted, const Interrupted& interrupted);

  /// Writes slot i of `out` for received.ids[i], makes these environments free for the next request
  /// and returns the final steps of results whose kind has kFinal, in order.
  std::vector<std::unique_ptr<FinalStep>> Gather(Received& received, const OutputViews& out);

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

  // -- for callers that decide about a step after it (own tasks with functions of the batch) --

  /// Adds to the returns of these environments' episodes, and ends those of `ended` (one flag per
  /// id) as if their step had: they are reset by the next step, or must be.
  void Amend(std::span<const int32_t> ids, std::span<const double> rewards,
             std::span<const uint8_t> ended);
  /// Returns and lengths [steps] of all present episodes, (num_envs) each; of one that has ended
  /// until it is reset.
  void GetEpisodes(double* returns, int32_t* lengths);
  /// Where Act writes, one row per environment.
  struct ActOutputs {
    void* actions = nullptr;  // (num_envs, action_size) float32 as drawn, or (num_envs) int64
    float* log_probs = nullptr;
    float* env_actions = nullptr;  // (num_envs, action_size); null for discrete actions
  };
  /// Draws a rollout's policy's actions now, from the streams it would draw from. `obs` is
  /// (num_envs, policy.obs_size()), which need not be the environments' own. In the calling thread.
  void Act(const Policy& policy, std::span<const int32_t> policy_ids, const double* obs,
           const ActOutputs& out);

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
  std::array<uint64_t, 6> RandomState(int32_t id);
  void SetRandomState(int32_t id, const std::array<uint64_t, 6>& words);

  Stats stats() const { return runner_.stats(); }
  EngineReport engine() const { return runner_.engine(); }

  /// Waits for running steps, drops queued ones and ends the threads. Idempotent.
  void Close();
  bool closed() const { return gate_.closed(); }

 private:
  void Work(int worker);
  bool RunRequests(int worker, int max);
  void PushRequests(const RequestQueue::Requests& requests);
  void MakeGroupings() noexcept;
  bool RunBatch(BarrierBatch::Work& work, int num_items, int steps_each,
                const Interrupted& interrupted);
  int ChunkOf(int num_items, int steps_each) const;
  bool WorthWaking(int num_steps) const;
  // Has each worker touch what it owns of every environment; `touch` does not throw.
  void FirstTouch(std::function<void(int32_t)> touch);
  Outcome Collect(std::span<const int32_t> ids, const OutputViews& out, bool completed);
  Outcome Finish(std::span<const int32_t> ids, const OutputViews& out, bool completed);

  void CheckIds(std::span<const int32_t> ids) const;
  void CheckFree(std::span<const int32_t> ids, const char* what) const;
  static void CheckReset(const char* what, const std::vector<int32_t>& unreset);

  const VectorEnvOptions options_;
  const int num_threads_;
  EnvRunner runner_;
  EnvStore store_;
  std::atomic<size_t> state_bytes_;  // of store_'s layout; read without a lock
  EpisodeRules rules_;
  std::vector<int32_t> all_ids_;

  CallGate gate_;
  CostEstimate step_cost_;
  CostOrder cost_order_;    // with the gate's Exclusive
  GroupOrder group_order_;  // likewise
  // of all environments, for the workers and for one alone; likewise
  Grouping groups_, groups_alone_;
  std::atomic<int> group_size_{1};  // the same for helpers, which look before they hold anything
  FailureList failures_;            // of the barrier batch
  RequestQueue queue_;
  std::unique_ptr<BarrierBatch> batch_;
  std::unique_ptr<ThreadPool> pool_;  // last: its threads use everything above
};

}  // namespace pyfastenv
