// The closed loop: workers choose the actions themselves and run environments for many steps.
//
// There is no barrier: a worker takes a block of environments, runs it for a segment of its steps
// with policy and physics hot in its cache, gives it back and takes the next. A block is one
// environment, or some groups of those whose physics runs together: they go step by step, side by
// side, each step grouped anew (group_order.h). What an environment does is a function of its own
// row, its two random streams and the policy, so results do not depend on which worker ran what, or
// beside whom.
//
// The work of one BarrierBatch. The store must not be used by others until the batch is over.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/advance.h"
#include "core/barrier_batch.h"
#include "core/cost_estimate.h"
#include "core/env_runner.h"
#include "core/env_store.h"
#include "core/errors.h"
#include "core/failure_list.h"
#include "core/group_order.h"
#include "core/grouping.h"
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
  std::vector<double> info;       // (info_size) of the last step; NaN if the physics diverged
};

/// Its items are blocks of environments.
class Rollout final : public BarrierBatch::Work {
 public:
  struct Request {
    const Policy* policy = nullptr;
    std::span<const int32_t> policy_ids;  // (N); empty: policy 0 for all
    int num_steps = 1;
    RolloutViews out;
  };

  Rollout(EnvStore& store, const EpisodeRules& rules, const Request& request, EnvRunner& runner,
          int num_threads);
  ~Rollout() override;

  int num_items() const { return blocks_.num_groups(); }
  int Chunk() const override;
  int Run(int worker, std::span<int32_t> blocks) noexcept override;

  // the results, once the batch is over
  std::vector<EpisodeEnd> TakeEpisodes();  // sorted by step and environment
  std::vector<EnvFailure> TakeFailures();

 private:
  struct Lane;
  struct Worker;
  std::span<const int32_t> AliveOf(Worker& worker, int block) const;
  /// Runs steps begin … end - 1 of a block's environments.
  void RunSegment(int worker, std::span<const int32_t> ids, int begin, int end) noexcept;
  void RunAlone(int worker, int32_t id, int begin, int end) noexcept;
  /// The same; if it throws, nothing has been committed.
  void RunSteps(int worker, std::span<const int32_t> ids, int begin, int end);
  void Begin(Lane& lane, int32_t id);
  void ChooseActions(std::span<Lane* const> lanes) const;
  void PrepareSteps(Environment& env, Worker& worker, std::span<Lane* const> lanes) const;
  Action ActionOf(const Lane& lane) const;
  void RunStep(Environment& env, Worker& worker, Lane& lane, int t);
  void CopyOwn(const double* from, double* to) const;
  void Commit(const Lane& lane);
  void ReadObservation(int32_t id, double* obs);
  void Observe(const Environment& env, double* obs) const;
  void WriteLastObservation(int32_t id, const double* obs);
  void WriteFailed(int32_t id, int begin);
  int SegmentSteps() const;

  EnvStore& store_;
  const EpisodeRules& rules_;
  const Request request_;
  EnvRunner& runner_;
  const int num_threads_;
  const int obs_size_;
  std::vector<std::unique_ptr<Worker>> workers_;

  const Grouping blocks_;
  std::vector<int32_t> done_steps_;   // per block; of whoever holds it
  std::vector<int32_t> failed_step_;  // per environment; -1: it has not failed
  FailureList failures_;
  CostEstimate cost_;
};

}  // namespace pyfastenv
