#include "core/request_queue.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/polling.h"

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

}  // namespace

struct RequestQueue::Slots {
  Slots(size_t num_envs, const EnvSpec& spec)
      : kind(num_envs),
        seeds(num_envs),
        action_dtypes(num_envs, DType::kFloat32),
        num_reset_options(spec.reset_options.size()),
        reset_options(num_envs * num_reset_options),
        action_stride(static_cast<size_t>(spec.action_size()) * sizeof(double)),
        actions(num_envs * action_stride),
        rewards(num_envs),
        flags(3 * num_envs),
        infos(num_envs * static_cast<size_t>(spec.info_size())) {
    views.rewards = rewards.data();
    views.terminations = flags.data();
    views.truncations = flags.data() + num_envs;
    views.kinds = flags.data() + 2 * num_envs;
    double* column = infos.data();
    for (const auto& info : spec.infos) {
      views.columns.push_back({column, DType::kFloat64, info.width()});
      column += num_envs * static_cast<size_t>(info.width());
    }
  }

  std::vector<Job::Kind> kind;
  std::vector<std::vector<uint32_t>> seeds;
  std::vector<DType> action_dtypes;
  size_t num_reset_options;
  std::vector<double> reset_options;
  size_t action_stride;
  std::vector<uint8_t> actions;  // float64, float32 or int64 items as sent
  std::vector<double> rewards;
  std::vector<uint8_t> flags;  // terminations, truncations, kinds
  std::vector<double> infos;   // one column after another
  OutputViews views;           // of the above; observations stay in the environments' store
};

RequestQueue::RequestQueue(int num_envs, const EnvSpec& spec)
    : num_envs_(num_envs),
      spec_(spec),
      is_under_way_(static_cast<size_t>(num_envs)),
      requests_(static_cast<size_t>(num_envs)),
      results_(static_cast<size_t>(num_envs)) {}

RequestQueue::~RequestQueue() = default;

std::vector<int32_t> RequestQueue::UnderWay(std::span<const int32_t> ids) const {
  std::vector<int32_t> under_way;
  if (idle()) return under_way;
  const auto look = [&](int32_t id) {
    if (is_under_way_[static_cast<size_t>(id)].load(std::memory_order_acquire) != 0) {
      under_way.push_back(id);
    }
  };
  if (ids.empty()) {
    for (int32_t id = 0; id < num_envs_; ++id) look(id);
  } else {
    for (const int32_t id : ids) look(id);
  }
  return under_way;
}

// ---- senders ----

void RequestQueue::Push(const Requests& requests) {
  const auto count = static_cast<int>(requests.ids.size());
  if (!slots_) slots_ = std::make_unique<Slots>(static_cast<size_t>(num_envs_), spec_);
  std::vector<std::vector<uint32_t>> seeds(requests.seeds.begin(), requests.seeds.end());
  seeds.resize(requests.ids.size());

  // from here on nothing throws
  Slots& slots = *slots_;
  for (size_t i = 0; i < requests.ids.size(); ++i) {
    const auto id = static_cast<size_t>(requests.ids[i]);
    slots.kind[id] = requests.kind;
    slots.seeds[id].swap(seeds[i]);
    if (requests.kind == Job::Kind::kStep) {
      const ActionViews& actions = requests.actions;
      std::memcpy(slots.actions.data() + id * slots.action_stride, actions.at(i),
                  static_cast<size_t>(spec_.action_size()) * ItemSize(actions.dtype));
      slots.action_dtypes[id] = actions.dtype;
    } else {
      std::copy(requests.reset_options.begin(), requests.reset_options.end(),
                slots.reset_options.begin() + static_cast<ptrdiff_t>(id * slots.num_reset_options));
    }
    is_under_way_[id].store(1, std::memory_order_relaxed);
  }
  under_way_.fetch_add(count, std::memory_order_release);
  {
    const std::lock_guard lock(results_mutex_);
    pending_ += count;
  }
  {
    const std::lock_guard lock(requests_mutex_);
    if (cleared_) return;  // closed meanwhile: as if it had been sent a moment earlier
    for (const int32_t id : requests.ids) requests_.Push(id);
    num_requests_.store(static_cast<int>(requests_.size()), std::memory_order_relaxed);
  }
  // a receiver that sleeps may be able to help
  const std::lock_guard lock(results_mutex_);
  if (receivers_ > 0) results_changed_->notify_all();
}

// ---- workers ----

int RequestQueue::TakeRequests(int parts, int least, int max, int32_t* ids) {
  if (num_requests() == 0) return 0;
  const std::lock_guard lock(requests_mutex_);
  const int part = static_cast<int>(requests_.size()) / parts;
  const auto taken = requests_.Pop(static_cast<size_t>(std::clamp(part, least, max)), ids);
  num_requests_.store(static_cast<int>(requests_.size()), std::memory_order_relaxed);
  return static_cast<int>(taken);
}

bool RequestQueue::PutBack(std::span<const int32_t> ids) {
  const std::lock_guard lock(requests_mutex_);
  if (cleared_) return false;
  for (const int32_t id : ids) requests_.Push(id);
  num_requests_.store(static_cast<int>(requests_.size()), std::memory_order_relaxed);
  return true;
}

Job RequestQueue::JobOf(int32_t id) const {
  const Slots& slots = *slots_;
  const auto i = static_cast<size_t>(id);
  return {slots.kind[i],
          id,
          Action(slots.actions.data() + i * slots.action_stride, slots.action_dtypes[i],
                 spec_.action_size()),
          &slots.seeds[i],
          {slots.reset_options.data() + i * slots.num_reset_options, slots.num_reset_options}};
}

const OutputViews& RequestQueue::outputs() const { return slots_->views; }

void RequestQueue::PutResults(std::span<const int32_t> ids) {
  const std::lock_guard lock(results_mutex_);
  for (const int32_t id : ids) results_.Push(id);
  num_results_.store(static_cast<int>(results_.size()), std::memory_order_release);
  if (receivers_ > 0) results_changed_->notify_all();
}

// ---- receivers ----

RequestQueue::Received RequestQueue::Receive(const Wanted& request, const CallGate& gate,
                                             const Help& help, const Interrupted& interrupted) {
  const auto start = Clock::now();
  const auto& timeout = request.timeout_seconds;
  const auto deadline = timeout
                            ? start + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(std::min(*timeout, 1e8)))
                            : Clock::time_point::max();
  auto poll_at = start + kPollInterval;
  const auto stopped = [&] {
    if (Clock::now() < poll_at) return false;
    poll_at = Clock::now() + kPollInterval;
    return interrupted();
  };
  Received nothing;
  nothing.interrupted = true;
  std::unique_lock lock(results_mutex_);
  while (true) {
    if (gate.closed()) throw UsageError(Code::kClosed, "the vector environment is closed");
    if (pending_ == 0) {
      throw UsageError(Code::kNothingPending,
                       "recv: nothing has been sent; call send() or async_reset() first");
    }
    const auto wanted =
        static_cast<size_t>(request.min_envs > 0 ? std::min(request.min_envs, pending_) : pending_);
    const size_t there = results_.size();
    const auto now = Clock::now();
    if (there >= wanted || (there > 0 && now >= deadline)) {
      Received received;
      const size_t most = request.max_envs > 0 ? static_cast<size_t>(request.max_envs) : there;
      received.ids.resize(std::min(there, most));
      PopResults(received);
      lock.unlock();
      ReadOutcomes(received);
      return received;
    }
    lock.unlock();
    if (stopped()) return nothing;
    // with a deadline or a few missing results, look up after every environment
    const bool hurry = timeout.has_value() || wanted - there < BarrierBatch::kMaxChunk;
    if (num_requests() > 0 && help(hurry)) {
      // that may have taken long, and have been all that was missing
      if (stopped()) return nothing;
      lock.lock();
      continue;
    }
    // the missing results are on other threads: spin for a step's time, then sleep
    const auto spin_until = std::min(now + kSpin, deadline);
    while (static_cast<size_t>(num_results_.load(std::memory_order_acquire)) < wanted &&
           Clock::now() < spin_until) {
      CpuRelax();
    }
    lock.lock();
    if (results_.size() < wanted && !gate.closed()) {
      ++receivers_;
      const auto until = results_.size() > 0 ? std::min(poll_at, deadline) : poll_at;
      results_changed_->wait_until(lock, until);
      --receivers_;
    }
  }
}

// results_mutex_ is held
void RequestQueue::PopResults(Received& received) {
  results_.Pop(received.ids.size(), received.ids.data());
  received.queue_ = this;
  num_results_.store(static_cast<int>(results_.size()), std::memory_order_release);
  pending_ -= static_cast<int>(received.ids.size());
  if (receivers_ > 0) results_changed_->notify_all();  // the others may now be waiting for less
}

// Takes out those that failed, which have no results.
void RequestQueue::ReadOutcomes(Received& received) {
  const Slots& slots = *slots_;
  std::vector<int32_t>& ids = received.ids;
  if (failures_.any()) {
    const auto has_failed = [&](int32_t id) { return slots.views.kinds[id] == kFailed; };
    std::vector<int32_t> failed;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(failed), has_failed);
    received.failures = failures_.Take(failed);
    std::erase_if(ids, has_failed);  // nothing can throw any more
  }
  for (const int32_t id : ids) {
    if (slots.action_dtypes[static_cast<size_t>(id)] == DType::kFloat64) {
      received.action_dtype = DType::kFloat64;
    }
  }
}

void RequestQueue::ReturnUnused(Received& received) noexcept {
  failures_.PutBack(received.failures);
  const std::lock_guard lock(results_mutex_);
  for (const auto& failure : received.failures) results_.PushFront(failure.env_id);
  for (auto id = received.ids.rbegin(); id != received.ids.rend(); ++id) results_.PushFront(*id);
  pending_ += static_cast<int>(received.ids.size() + received.failures.size());
  num_results_.store(static_cast<int>(results_.size()), std::memory_order_release);
  if (receivers_ > 0) results_changed_->notify_all();
}

RequestQueue::Received& RequestQueue::Received::operator=(Received&& other) noexcept {
  std::swap(ids, other.ids);
  std::swap(failures, other.failures);
  std::swap(action_dtype, other.action_dtype);
  std::swap(interrupted, other.interrupted);
  std::swap(queue_, other.queue_);
  return *this;
}

RequestQueue::Received::~Received() {
  if (queue_ != nullptr) queue_->ReturnUnused(*this);
}

void RequestQueue::Release(Received& received) {
  const auto release = [this](int32_t id) {
    is_under_way_[static_cast<size_t>(id)].store(0, std::memory_order_release);
  };
  for (const int32_t id : received.ids) release(id);
  for (const auto& failure : received.failures) release(failure.env_id);
  under_way_.fetch_sub(static_cast<int>(received.ids.size() + received.failures.size()),
                       std::memory_order_release);
  received.queue_ = nullptr;
}

// ---- closing ----

void RequestQueue::Clear() {
  {
    const std::lock_guard lock(requests_mutex_);
    cleared_ = true;
    requests_.Clear();
    num_requests_.store(0, std::memory_order_relaxed);
  }
  const std::lock_guard lock(results_mutex_);
  results_changed_->notify_all();
}

}  // namespace pyfastenv
