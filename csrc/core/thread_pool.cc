#include "core/thread_pool.h"

#include <algorithm>
#include <utility>

#include "core/float_mode.h"
#include "core/fork.h"

namespace pyfastenv {

ThreadPool::ThreadPool(int num_threads, std::function<void(int)> work)
    : work_(std::move(work)),
      fork_generation_(ForkGeneration()),
      num_helpers_(num_threads - 1),
      helpers_(std::make_unique<Helper[]>(static_cast<size_t>(num_helpers_))) {
  try {
    for (int worker = 1; worker <= num_helpers_; ++worker) {
      helper(worker).thread = std::thread([this, worker] { Loop(worker); });
    }
  } catch (...) {  // the system has no more threads: stop those that started
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  if (fork_generation_ != ForkGeneration()) Abandon();
  if (!helpers_) return;
  stopping_.store(true);
  for (int worker = 1; worker <= num_helpers_; ++worker) Signal(worker, 0);
  for (int worker = 1; worker <= num_helpers_; ++worker) {
    if (helper(worker).thread.joinable()) helper(worker).thread.join();
  }
}

void ThreadPool::Wake(int helpers) {
  helpers = std::min(helpers, num_helpers_);
  if (helpers > 0) Signal(1, helpers);
}

void ThreadPool::WakeEach(int helpers) {
  helpers = std::min(helpers, num_helpers_);
  for (int worker = 1; worker <= helpers; ++worker) Signal(worker, 0);
}

void ThreadPool::Signal(int worker, int meant_for) {
  Helper& to = helper(worker);
  // written even if it is large enough: a helper that takes it before us has seen an earlier signal
  // only, and ours finds it small; one that takes it after us sees what our caller wrote before
  int before = to.meant_for.load(std::memory_order_relaxed);
  while (!to.meant_for.compare_exchange_weak(before, std::max(before, meant_for),
                                             std::memory_order_acq_rel)) {
  }
  // The helper announces itself in parked before it re-reads epoch in wait(); we write epoch before
  // we read parked. Both are seq_cst, so at least one of us sees the other.
  to.epoch.fetch_add(1);
  if (to.parked.load()) to.epoch.notify_one();
}

void ThreadPool::Abandon() {
  // a std::thread may be neither joined nor detached in the child, so it is leaked
  (void)helpers_.release();  // NOLINT(bugprone-unused-return-value)
  num_helpers_ = 0;
}

void ThreadPool::Loop(int worker) {
  Helper& me = helper(worker);
  uint32_t seen = 0;
  while (true) {
    const auto spin_until = std::chrono::steady_clock::now() +
                            std::chrono::nanoseconds(spin_ns_.load(std::memory_order_relaxed));
    uint32_t epoch = me.epoch.load(std::memory_order_acquire);
    for (int i = 0; epoch == seen; epoch = me.epoch.load(std::memory_order_acquire)) {
      CpuRelax();
      if (++i % 64 != 0 || std::chrono::steady_clock::now() < spin_until) continue;
      me.parked.store(true);
      me.epoch.wait(seen);
      me.parked.store(false);
    }
    seen = epoch;
    if (stopping_.load()) return;
    const int meant_for = me.meant_for.exchange(0, std::memory_order_acquire);
    for (int child = 2 * worker; child <= std::min(2 * worker + 1, meant_for); ++child) {
      Signal(child, meant_for);
    }
    // the mode that this thread has inherited is that of whoever made the pool
    const DefaultFloats floats;
    work_(worker);
  }
}

}  // namespace pyfastenv
