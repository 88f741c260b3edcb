#include "core/batch_work.h"

namespace pyfastenv {

using Clock = CostEstimate::Clock;

int StepWork::Run(int worker, std::span<int32_t> groups) noexcept {
  const auto start = Clock::now();
  auto since = start;
  int64_t num_steps = 0;
  Job jobs[EnvRunner::kMaxGroup];
  for (const int32_t group : groups) {
    const auto [begin, end] = request_.grouping->Positions(group);
    const auto size = static_cast<size_t>(end - begin);
    for (size_t i = 0; i < size; ++i) {
      const int32_t id = IdAt(begin + static_cast<int32_t>(i));
      jobs[i].id = id;
      jobs[i].action = Action(request_.actions.at(static_cast<size_t>(id)), request_.actions.dtype,
                              runner_.spec().action_size());
    }
    runner_.RunGroup(worker, {jobs, size}, *request_.out, failures_, request_.group_order);
    num_steps += end - begin;
    if (request_.cost_order == nullptr) continue;
    const auto now = Clock::now();
    for (size_t i = 0; i < size; ++i) {
      request_.cost_order->Note(jobs[i].id, (now - since) / (end - begin));
    }
    since = now;
  }
  if (worker == 0) cost_.Note(start, num_steps);
  return 0;
}

int32_t StepWork::IdAt(int32_t position) const {
  if (request_.cost_order != nullptr) return request_.cost_order->At(position);
  return request_.group_order != nullptr ? request_.group_order->At(position) : position;
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
