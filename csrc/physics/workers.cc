#include "physics/workers.h"

#include <algorithm>

#include "core/failure_list.h"
#include "core/polling.h"
#include "physics/stop_signal.h"

namespace pyfastenv::physics {

namespace {

// Fewer simulations than this are no slower with mj_step: a group costs the same however many of
// its lanes are used, and that is 2.7 times mj_step for the most expensive robot (docs/lanes.md).
int FewestLanes(int width) { return width == 1 ? 1 : std::max(2, 3 * width / 8); }

}  // namespace

int CountLaneGroups(int count, int workers, int width) {
  const int rounds = (count + workers * width - 1) / (workers * width);
  const int groups = std::min(workers * rounds, count);
  return groups > 0 && count / groups >= FewestLanes(width) ? groups : 0;
}

void Split(std::span<const int> items, int groups, const PlanInUse& lanes, std::vector<Job>& jobs) {
  const auto count = static_cast<int64_t>(items.size());
  for (int group = 0; group < groups; ++group) {
    const auto begin = static_cast<size_t>(count * group / groups);
    const auto end = static_cast<size_t>(count * (group + 1) / groups);
    jobs.push_back({items.subspan(begin, end - begin), lanes});
  }
}

// What the workers take: jobs, in lanes or one item after the other.
class Workers::JobsWork final : public BarrierBatch::Work {
 public:
  JobsWork(const std::vector<Job>& jobs, std::vector<Worker>& workers, const StopSignal& stop)
      : jobs_(jobs), workers_(workers), stop_(stop) {}

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
  const std::vector<Job>& jobs_;
  std::vector<Worker>& workers_;
  const StopSignal& stop_;
};

Workers::Workers(const char* kind, int num_threads) : gate_(kind) {
  for (int worker = 0; worker < num_threads; ++worker) workers_.emplace_back(worker);
  pool_ = std::make_unique<ThreadPool>(num_threads, [this](int worker) {
    while (batch_->RunSome(worker)) {
    }
  });
  batch_ = std::make_unique<BarrierBatch>(*pool_, num_threads);
}

Workers::~Workers() {
  if (gate_.forked()) batch_->Abandon();
  pool_->Stop();  // its threads use all else
}

Outcome Workers::Run(const Task& task, const std::vector<Job>& jobs, size_t count, bool leaves_data,
                     const Interrupted& interrupted) {
  Outcome outcome;
  outcome.statuses.assign(count, Status::kNotRun);
  StopSignal stop(interrupted);
  FailureList failures;
  const Worker::Call call{task, outcome.statuses, stop, failures};
  for (Worker& worker : workers_) worker.Begin(call);
  if (!jobs.empty()) {
    JobsWork work(jobs, workers_, stop);
    BarrierBatch::Options options;
    options.count = static_cast<int>(jobs.size());
    options.helpers = static_cast<int>(std::min(workers_.size(), jobs.size())) - 1;
    options.spin = kSpin;
    batch_->Run(work, options, [&] { return stop.Ask(); });
  }
  for (Worker& worker : workers_) {
    if (leaves_data) worker.FinishData();
  }
  outcome.interrupted = stop.raised();
  outcome.failures = failures.TakeAll();
  return outcome;
}

void Workers::ForgetModels() {
  for (Worker& worker : workers_) worker.Forget();
}

std::pair<int64_t, int64_t> Workers::CountLaneSteps() {
  const CallGate::Exclusive exclusive(gate_);
  std::pair<int64_t, int64_t> sum{};
  for (const Worker& worker : workers_) {
    sum.first += worker.lane_steps();
    sum.second += worker.steps_left();
  }
  return sum;
}

}  // namespace pyfastenv::physics
