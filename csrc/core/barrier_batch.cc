#include "core/barrier_batch.h"

#include <algorithm>

#include "core/polling.h"

namespace pyfastenv {

bool BarrierBatch::Run(Work& work, const Options& options, const Interrupted& interrupted) {
  if (options.gives_back) shares_.ReserveGiveBack(options.count);
  work_ = &work;
  left_.store(options.count, std::memory_order_relaxed);
  pool_.set_spin(options.spin);
  shares_.Deal(options.count, options.order);
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
