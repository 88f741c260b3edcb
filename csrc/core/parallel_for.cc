#include "core/parallel_for.h"

namespace pyfastenv {

ParallelFor::ParallelFor(int num_threads)
    : pool_(num_threads, [this](int worker) { Work(worker); }) {}

void ParallelFor::Run(int count, const Body& body) {
  body_ = &body;
  mode_ = FloatMode::OfThisThread();
  finished_.store(0, std::memory_order_relaxed);
  unclaimed_.store(count, std::memory_order_release);
  pool_.WakeEach(count - 1);
  Work(0);
  SpinUntil([&] { return finished_.load(std::memory_order_acquire) == count; });
}

void ParallelFor::Work(int worker) {
  // late helpers of an earlier call come here too, and find nothing or a share of this one
  int left = unclaimed_.load(std::memory_order_acquire);
  while (left > 0) {
    if (unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acquire)) {
      {
        const FloatScope scope(mode_);
        (*body_)(worker, left - 1);
      }
      finished_.fetch_add(1, std::memory_order_release);
      left = unclaimed_.load(std::memory_order_acquire);
    }
  }
}

}  // namespace pyfastenv
