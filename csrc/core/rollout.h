// The closed loop: workers choose the actions themselves and run environments for many steps.
//
// There is no barrier: a worker takes an environment, runs it for a segment of its steps with
// policy and physics hot in its cache, puts it back and takes the next. What an environment does is
// a function of its own row, its two random streams and the policy, so results do not depend on
// which worker ran what.
//
// Any number of threads may call RunSome at a time, each with its own number and Environment. The
// store must not be used by others until all have returned.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/advance.h"
#include "core/env_store.h"
#include "core/errors.h"
#include "core/id_queue.h"
#include "nn/policy.h"
#include "npy/dtype.h"

namespace pyfastenv {

/// Where a rollout is written: C-contiguous arrays of the caller, (num_steps, num_envs, …).
struct RolloutViews {
  void* obs = nullptr;       // (T, N, obs_size) what the policy saw, before normalisation
  void* last_obs = nullptr;  // (N, obs_size) after the last step
  DType obs_dtype = DType::kFloat32;
  void* actions = nullptr;  // (T, N, action_size) float32 as drawn, or (T, N) int64
  float* log_probs = nullptr;
  void* rewards = nullptr;
  DType reward_dtype = DType::kFloat32;
  uint8_t* terminations = nullptr;
  uint8_t* truncations = nullptr;
  uint8_t* autoresets = nullptr;  // NEXT_STEP: this step was a reset; its action was not used
};

/// An episode that ended in a rollout.
struct EpisodeEnd {
  int32_t step = 0;  // of the rollout
  int32_t env_id = 0;
  double episode_return = 0.0;
  int32_t length = 0;
  bool terminated = false;
  std::vector<double> final_obs;  // (obs_size)
};

class Rollout {
 public:
  struct Request {
    const Policy* policy = nullptr;
    std::span<const int32_t> policy_ids;  // (N); empty: policy 0 for all
    int num_steps = 1;
    RolloutViews out;
  };

  struct Counts {
    int64_t steps = 0;
    int64_t episodes = 0;
    int64_t diverged = 0;
    int64_t failures = 0;
  };

  Rollout(EnvStore& store, const EpisodeRules& rules, const Request& request, const EnvSpec& spec,
          int num_threads);
  ~Rollout();

  /// Runs some environments for a segment; false if there is none to take.
  bool RunSome(int worker, Environment& env);

  /// Waits until every environment has done its steps (true), or for `timeout` (false): first
  /// spinning, then asleep.
  bool WaitFor(std::chrono::nanoseconds spin, std::chrono::nanoseconds timeout);

  /// Lets running segments end and takes no more. Returns once they have.
  void Stop();

  // the results, once all is done: sorted by step and environment
  std::vector<EpisodeEnd> TakeEpisodes();
  std::vector<EnvFailure> TakeFailures();
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Worker;
  /// Runs steps begin … end - 1 of an environment; false if it failed and is done with.
  bool RunSegment(Environment& env, Worker& worker, int32_t id, int begin, int end);
  void RunSteps(Environment& env, Worker& worker, int32_t id, int begin, int end);
  void ReadObservation(int32_t id, double* obs);
  void Observe(const Environment& env, double* obs) const;
  void WriteFailed(int32_t id, int begin);
  int SegmentSteps() const;
  size_t EnvsToTake(int segment) const;

  EnvStore& store_;
  const EpisodeRules& rules_;
  const Request request_;
  const int num_threads_;
  const int obs_size_;
  std::vector<std::unique_ptr<Worker>> workers_;

  std::vector<int32_t> done_steps_;  // per environment; of whoever holds it

  // environments that are not done with; release by who finishes one, acquire by who waits for 0
  std::atomic<int> unfinished_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  IdQueue queue_;
  int running_ = 0;  // environments that workers hold
  bool stopped_ = false;
  double step_seconds_ = 0.0;  // estimate of one environment's step; 0: unknown
};

}  // namespace pyfastenv
