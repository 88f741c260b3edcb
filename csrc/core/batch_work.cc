#include "core/batch_work.h"

#include <chrono>

namespace pyfastenv {

using Clock = CostEstimate::Clock;

int StepWork::Run(int worker, std::span<int32_t> ids) noexcept {
  const auto start = Clock::now();
  auto since = start;
  for (const int32_t id : ids) {
    Job job;
    job.id = id;
    job.action = Action(request_.actions.at(static_cast<size_t>(id)), request_.actions.dtype,
                        runner_.spec().action_size());
    runner_.Run(worker, job, *request_.out, failures_);
    if (request_.cost_order == nullptr) continue;
    const auto now = Clock::now();
    request_.cost_order->Note(id, now - since);
    since = now;
  }
  if (worker == 0) cost_.Note(start, static_cast<int64_t>(ids.size()));
  return 0;
}

int ResetWork::Run(int worker, std::span<int32_t> positions) noexcept {
  const auto start = Clock::now();
  for (const int32_t position : positions) {
    const auto i = static_cast<size_t>(position);
    Job job;
    job.kind = Job::Kind::kReset;
    job.id = request_.ids[i];
    job.seed = request_.seeds.empty() ? nullptr : &request_.seeds[i];
    job.reset_options = request_.reset_options;
    runner_.Run(worker, job, *request_.out, failures_);
  }
  if (worker == 0) cost_.Note(start, static_cast<int64_t>(positions.size()));
  return 0;
}

}  // namespace pyfastenv
