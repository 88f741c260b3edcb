// What the workers of one call take: jobs, each some of the call's items, in lanes or one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/barrier_batch.h"
#include "core/polling.h"
#include "physics/plan_cache.h"
#include "physics/stop_signal.h"

namespace pyfastenv::physics {

/// Items that one worker runs at a time, in lanes if there is a plan.
struct Job {
  std::span<const int> items;
  PlanInUse lanes;
};

/// Worker has Run(item) and RunLanes(items, lanes), which do not throw.
template <class Worker>
class LaneJobs final : public BarrierBatch::Work {
 public:
  /// Runs them all, or until `stop` is raised.
  static void RunAll(BarrierBatch& batch, const std::vector<Job>& jobs,
                     std::vector<Worker>& workers, StopSignal& stop) {
    if (jobs.empty()) return;
    LaneJobs work(jobs, workers, stop);
    BarrierBatch::Options options;
    options.count = static_cast<int>(jobs.size());
    options.helpers = static_cast<int>(std::min(workers.size(), jobs.size())) - 1;
    options.spin = kSpin;
    batch.Run(work, options, [&] { return stop.Ask(); });
  }

  int Chunk() const override { return 1; }
  int Run(int worker, std::span<int32_t> items) noexcept override {
    Worker& on = workers_[static_cast<size_t>(worker)];
    for (const int32_t item : items) {
      const Job& job = jobs_[static_cast<size_t>(item)];
      if (job.lanes.plan != nullptr) {
        if (!stop_.raised()) on.RunLanes(job.items, job.lanes);
        continue;
      }
      for (size_t i = 0; i < job.items.size() && !stop_.raised(); ++i) on.Run(job.items[i]);
    }
    return 0;
  }

 private:
  LaneJobs(const std::vector<Job>& jobs, std::vector<Worker>& workers, const StopSignal& stop)
      : jobs_(jobs), workers_(workers), stop_(stop) {}

  const std::vector<Job>& jobs_;
  std::vector<Worker>& workers_;
  const StopSignal& stop_;
};

}  // namespace pyfastenv::physics
