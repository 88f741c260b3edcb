#include "physics/rollout_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/failure_list.h"
#include "physics/lane_groups.h"
#include "physics/stop_signal.h"

namespace pyfastenv::physics {

namespace {

// Lanes take their inputs from the call. Without controls they are what the data have, which may be
// reset in between: left to mj_step unless it is a ctrl of zero.
bool InputsSuitLanes(const RolloutRequest& request, const mjModel& m) {
  if (request.controls != nullptr || request.control_spec == 0) return true;
  if (request.control_spec != mjSTATE_CTRL) return false;
  return std::all_of(request.data.begin(), request.data.end(), [&](const mjData* data) {
    const auto is_zero = [](double u) { return u == 0 && !std::signbit(u); };
    return std::all_of(data->ctrl, data->ctrl + m.nu, is_zero);
  });
}

}  // namespace

RolloutPool::RolloutPool(int num_threads, PlanCache& plans)
    : plans_(plans), workers_(static_cast<size_t>(num_threads)) {
  pool_ = std::make_unique<ThreadPool>(num_threads, [this](int worker) {
    while (batch_->RunSome(worker)) {
    }
  });
  batch_ = std::make_unique<BarrierBatch>(*pool_, num_threads);
}

RolloutPool::~RolloutPool() {
  if (gate_.forked()) batch_->Abandon();
  pool_->Stop();  // its threads use all else
}

namespace {

// The classes of several models, and of which each rollout is. Models that belong to none of the
// first kMostClasses are of none (-1).
struct Classes {
  static constexpr size_t kMostClasses = 16;

  explicit Classes(std::span<const mjModel* const> models) {
    std::unordered_map<const mjModel*, int> known;
    for (const mjModel* model : models) {
      const auto [found, is_new] = known.try_emplace(model, -1);
      if (is_new) found->second = Find(*model);
      of_rollout.push_back(found->second);
    }
  }

  std::vector<ModelClass> classes;
  std::vector<int> of_rollout;

 private:
  int Find(const mjModel& model) {
    for (size_t i = 0; i < classes.size(); ++i) {
      const std::optional<uint64_t> differences = classes[i].image.Differences(model);
      if (!differences) continue;
      classes[i].numbers |= *differences;
      return static_cast<int>(i);
    }
    if (classes.size() == kMostClasses) return -1;
    classes.emplace_back(model);
    return static_cast<int>(classes.size()) - 1;
  }
};

}  // namespace

std::vector<Job> RolloutPool::Divide(const RolloutRequest& request) {
  std::vector<Job> jobs;
  const auto& models = request.models;
  order_.resize(models.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (std::all_of(models.begin(), models.end(), [&](auto* m) { return m == models[0]; })) {
    AddJobs(request, order_, 0, jobs);
    return jobs;
  }
  // class by class; the last rollout's comes last, as what the data hold afterwards is its
  const Classes found(models);
  const int last = found.of_rollout.back();
  const auto turn = [&](int rollout) {
    const int of = found.of_rollout[static_cast<size_t>(rollout)];
    return of == last ? std::numeric_limits<int>::max() : of;
  };
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return turn(a) < turn(b); });
  for (auto begin = order_.begin(); begin != order_.end();) {
    const auto end =
        std::find_if(begin, order_.end(), [&](int r) { return turn(r) != turn(*begin); });
    const int of = found.of_rollout[static_cast<size_t>(*begin)];
    const std::span<const int> rollouts(begin, end);
    if (of >= 0) {
      AddJobs(request, rollouts, found.classes[static_cast<size_t>(of)].numbers, jobs);
    } else {
      for (size_t i = 0; i < rollouts.size(); ++i) jobs.push_back({rollouts.subspan(i, 1), {}});
    }
    begin = end;
  }
  return jobs;
}

// Of rollouts whose models differ in these numbers at most.
void RolloutPool::AddJobs(const RolloutRequest& request, std::span<const int> rollouts,
                          uint64_t numbers, std::vector<Job>& jobs) {
  const mjModel& m = request.model(rollouts[0]);
  const auto count = static_cast<int>(rollouts.size());
  PlanInUse lanes;
  int groups = 0;
  if (InputsSuitLanes(request, m)) {
    // lanes that all workers together have for these rollouts
    const lanes::Kernels& kernels = lanes::BestKernels();
    const int width = kernels.width;
    const auto share = static_cast<int64_t>(request.data.size()) * count / request.num_rollouts();
    groups = CountLaneGroups(count, std::max(1, static_cast<int>(share)), width);
    if (groups > 0 &&
        (numbers != 0 || !plans_.LeavesToMujoco(m, int64_t{groups} * request.num_steps))) {
      lanes =
          plans_.Find(m, kernels, int64_t{count} * request.num_steps, request.senses(), numbers);
    }
  }
  if (lanes.plan == nullptr) groups = (count + request.chunk_size - 1) / request.chunk_size;
  for (int group = 0; group < groups; ++group) {
    const auto begin = static_cast<size_t>(int64_t{count} * group / groups);
    const auto end = static_cast<size_t>(int64_t{count} * (group + 1) / groups);
    jobs.push_back({rollouts.subspan(begin, end - begin), lanes});
  }
}

RolloutPool::Outcome RolloutPool::Run(const RolloutRequest& request,
                                      const Interrupted& interrupted) {
  const CallGate::Exclusive exclusive(gate_);
  StopSignal stop(interrupted);
  FailureList failures;
  const std::vector<Job> jobs = Divide(request);
  for (size_t w = 0; w < workers_.size(); ++w) {
    workers_[w].Begin(request, *request.data[w], stop, failures, w == 0);
  }
  LaneJobs<RolloutWorker>::RunAll(*batch_, jobs, workers_, stop);
  for (RolloutWorker& worker : workers_) worker.FinishData();
  return {stop.raised(), failures.TakeAll()};
}

std::pair<int64_t, int64_t> RolloutPool::CountLaneSteps() {
  const CallGate::Exclusive exclusive(gate_);
  std::pair<int64_t, int64_t> sum{};
  for (const RolloutWorker& worker : workers_) {
    sum.first += worker.lane_steps();
    sum.second += worker.steps_left();
  }
  return sum;
}

}  // namespace pyfastenv::physics
