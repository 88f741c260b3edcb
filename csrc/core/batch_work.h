// What step and reset do with the environments of a BarrierBatch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/barrier_batch.h"
#include "core/buffers.h"
#include "core/cost_estimate.h"
#include "core/cost_order.h"
#include "core/env_runner.h"
#include "core/env_store.h"
#include "core/failure_list.h"
#include "core/group_order.h"
#include "core/grouping.h"

namespace pyfastenv {

/// Runs one job per item; what they share.
class BatchWork : public BarrierBatch::Work {
 public:
  BatchWork(EnvRunner& runner, FailureList& failures, CostEstimate& cost, int chunk)
      : runner_(runner), failures_(failures), cost_(cost), chunk_(chunk) {}

  int Chunk() const final { return chunk_; }

 protected:
  EnvRunner& runner_;
  FailureList& failures_;
  CostEstimate& cost_;  // noted by worker 0, which is in every batch

 private:
  const int chunk_;
};

/// Writes environments' memory for the first time, on the workers that will run them
/// (core/untouched.h).
class FirstTouchWork final : public BarrierBatch::Work {
 public:
  using Touch = std::function<void(int32_t id)>;  // does not throw

  explicit FirstTouchWork(Touch touch) : touch_(std::move(touch)) {}

  int Chunk() const override { return BarrierBatch::kMaxChunk; }
  int Run(int /*worker*/, std::span<int32_t> ids) noexcept override {
    for (const int32_t id : ids) touch_(id);
    return 0;
  }

 private:
  const Touch touch_;
};

/// Steps environments; its items are groups of them.
class StepWork final : public BatchWork {
 public:
  struct Request {
    ActionViews actions;  // slot = environment id
    const OutputViews* out;
    const Grouping* grouping;
    // of environments; at most one of them, else they are taken as they are numbered
    CostOrder* cost_order = nullptr;
    GroupOrder* group_order = nullptr;
  };

  StepWork(EnvRunner& runner, FailureList& failures, CostEstimate& cost, const Request& request,
           int chunk)
      : BatchWork(runner, failures, cost, chunk), request_(request) {}

  int Run(int worker, std::span<int32_t> groups) noexcept override;

 private:
  int32_t IdAt(int32_t position) const;

  const Request request_;
};

/// Resets environments; its items are positions in `ids`.
class ResetWork final : public BatchWork {
 public:
  struct Request {
    std::span<const int32_t> ids;
    std::span<const std::vector<uint32_t>> seeds;  // empty, or one per id
    std::span<const double> reset_options;
    const OutputViews* out;
  };

  ResetWork(EnvRunner& runner, FailureList& failures, CostEstimate& cost, const Request& request,
            int chunk)
      : BatchWork(runner, failures, cost, chunk), request_(request) {}

  int Run(int worker, std::span<int32_t> positions) noexcept override;

 private:
  const Request request_;
};

}  // namespace pyfastenv
