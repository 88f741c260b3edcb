#include "core/thread_pool.h"

#include <utility>

namespace pyfastenv {

ThreadPool::ThreadPool(int num_threads, std::function<void(int)> work) : work_(std::move(work)) {
  helpers_.reserve(static_cast<size_t>(num_threads - 1));
  try {
    for (int worker = 1; worker < num_threads; ++worker) {
      helpers_.emplace_back([this, worker] { Loop(worker); });
    }
  } catch (...) {  // the system has no more threads: stop those that started
    stopping_.store(true);
    Wake();
    for (auto& helper : helpers_) helper.join();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  Wake();
  for (auto& helper : helpers_) helper.join();
}

void ThreadPool::Wake() {
  // A helper announces itself in parked_ before it re-reads epoch_ in wait(); we write epoch_
  // before we read parked_. Both are seq_cst, so at least one of us sees the other.
  epoch_.fetch_add(1);
  if (parked_.load() > 0) epoch_.notify_all();
}

void ThreadPool::Abandon() {
  // a std::thread may be neither joined nor detached in the child, so it is leaked
  new std::vector<std::thread>(std::move(helpers_));  // NOLINT
  helpers_.clear();
}

void ThreadPool::Loop(int worker) {
  uint32_t seen = 0;
  while (true) {
    const auto spin_until = std::chrono::steady_clock::now() +
                            std::chrono::nanoseconds(spin_ns_.load(std::memory_order_relaxed));
    uint32_t epoch = epoch_.load(std::memory_order_acquire);
    for (int i = 0; epoch == seen; epoch = epoch_.load(std::memory_order_acquire)) {
      CpuRelax();
      if (++i % 64 != 0 || std::chrono::steady_clock::now() < spin_until) continue;
      parked_.fetch_add(1);
      epoch_.wait(seen);
      parked_.fetch_sub(1);
    }
    seen = epoch;
    if (stopping_.load()) return;
    work_(worker);
  }
}

}  // namespace pyfastenv
