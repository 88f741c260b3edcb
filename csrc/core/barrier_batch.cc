#include "core/barrier_batch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/polling.h"

namespace pyfastenv {

namespace {

// A caller that works alone takes more at a time while it takes less than this.
constexpr auto kQuick = std::chrono::microseconds(20);

}  // namespace

bool BarrierBatch::Run(Work& work, const Options& options, const Interrupted& interrupted) {
  if (options.helpers == 0 && !options.gives_back) return RunAlone(work, options, interrupted);
  if (options.gives_back) shares_.ReserveGiveBack(options.count);
  work_ = &work;
  left_.store(options.count, std::memory_order_relaxed);
  pool_.set_spin(options.spin);
  shares_.Deal(options.count);
  pool_.Wake(options.helpers);

  bool stopped = false;
  auto poll_at = Clock::now() + kPollInterval;
  while (true) {
    // what the helpers do, but looking up for a Ctrl-C
    RunUntil(0, poll_at);
    if (AllDone()) return !stopped;
    AwaitAll(Clock::now() + options.spin, poll_at);
    if (Clock::now() < poll_at) continue;
    poll_at = Clock::now() + kPollInterval;
    if (stopped || !interrupted()) continue;
    stopped = true;
    Finish(shares_.Drop());
  }
}

// Nobody to share with: nothing is dealt, no helper sees this call.
bool BarrierBatch::RunAlone(Work& work, const Options& options, const Interrupted& interrupted) {
  auto now = Clock::now();
  auto poll_at = now + kPollInterval;
  int32_t items[kMaxChunk];
  // its items may have become more expensive than it knows
  int chunk = std::min(work.Chunk(), options.first_chunk);
  for (int begin = 0; begin < options.count;) {
    const int end = std::min(begin + chunk, options.count);
    std::iota(items, items + (end - begin), begin);
    work.Run(0, {items, static_cast<size_t>(end - begin)});
    begin = end;
    if (begin == options.count) break;
    const auto before = std::exchange(now, Clock::now());
    chunk = now - before < kQuick ? std::min(2 * chunk, work.Chunk()) : 1;
    if (now < poll_at) continue;
    if (interrupted()) return false;
    poll_at = now + kPollInterval;
  }
  return true;
}

bool BarrierBatch::RunSome(int worker) { return RunUntil(worker, Clock::time_point::max()); }

bool BarrierBatch::RunUntil(int worker, Clock::time_point until) {
  int32_t items[kMaxChunk];
  int taken = shares_.Take(worker, 1, items);
  if (taken == 0) return false;
  // Whoever holds an item, or has finished one and not yet said so, keeps Run from returning: work_
  // is valid. Finish is called once, since the counter is everybody's.
  int finished = 0;
  while (taken > 0) {
    Work& work = *work_;
    const auto again = static_cast<size_t>(work.Run(worker, {items, static_cast<size_t>(taken)}));
    const int chunk = work.Chunk();
    finished += taken;
    if (again > 0 && shares_.GiveBack(worker, {items, again})) finished -= static_cast<int>(again);
    // `work` may be gone if everything was given back: the next item may be another call's
    if (until != Clock::time_point::max() && Clock::now() >= until) break;
    taken = shares_.Take(worker, finished > 0 ? chunk : 1, items);
  }
  Finish(finished);
  return true;
}

void BarrierBatch::Finish(int items) {
  // The caller announces that it sleeps before it looks at left_ once more; we write left_ before
  // we look whether it sleeps. Both are seq_cst, so at least one of us sees the other.
  if (items == 0 || left_.fetch_sub(items) != items || !asleep_.load()) return;
  const std::lock_guard lock(left_mutex_);
  left_changed_->notify_one();
}

void BarrierBatch::AwaitAll(Clock::time_point spin_until, Clock::time_point wake_at) {
  for (int i = 0; !AllDone(); ++i) {
    CpuRelax();
    if (i % 64 == 63 && Clock::now() > spin_until) break;
  }
  if (AllDone()) return;
  asleep_.store(true);
  {
    std::unique_lock lock(left_mutex_);
    left_changed_->wait_until(lock, wake_at, [this] { return left_.load() == 0; });
  }
  asleep_.store(false);
}

}  // namespace pyfastenv
