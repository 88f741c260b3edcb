// The indices of a loop, shared out among the threads of a pool.
//
// Run() returns when every index has been run; who runs which is not determined, so a result that
// does not depend on the number of threads must not depend on that either. So all threads compute
// in the caller's mode of floating-point numbers. One call at a time. Indices may wait for each
// other where there are no more of them than threads.
#pragma once

#include <atomic>
#include <functional>

#include "core/float_mode.h"
#include "core/thread_pool.h"

namespace pyfastenv {

class ParallelFor {
 public:
  /// Called with the worker, 0 … num_threads - 1, and the index; must not throw.
  using Body = std::function<void(int worker, int index)>;

  explicit ParallelFor(int num_threads);

  int num_threads() const { return pool_.num_threads(); }

  /// Calls `body` for the indices 0 … count - 1.
  void Run(int count, const Body& body);

 private:
  void Work(int worker);

  // written before the indices are given out
  const Body* body_ = nullptr;
  FloatMode mode_ = FloatMode::Default();
  std::atomic<int> unclaimed_{0};  // release by the caller, acquire by claimers
  std::atomic<int> finished_{0};   // release by workers, acquire by the caller
  ThreadPool pool_;                // last: its threads use everything above
};

}  // namespace pyfastenv
