#include "core/parallel_for.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/spin_barrier.h"
#include "forked_child.h"

namespace pyfastenv {
namespace {

TEST(ParallelFor, RunsEveryIndexOnceInEveryCall) {
  for (const int num_threads : {1, 2, 4}) {
    ParallelFor parallel(num_threads);
    EXPECT_EQ(parallel.num_threads(), num_threads);
    for (int count = 0; count < 50; ++count) {
      // not atomic: each index belongs to one thread, and Run() hands the results over
      std::vector<int> runs(static_cast<size_t>(count));
      for (int call = 1; call <= 20; ++call) {
        parallel.Run(count, [&](int worker, int index) {
          EXPECT_LT(worker, num_threads);
          ++runs[static_cast<size_t>(index)];
        });
        EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(count), call));
      }
    }
  }
}

TEST(ParallelFor, AWorkerRunsOneIndexAtATime) {
  ParallelFor parallel(3);
  std::vector<int> of_worker(3);  // not atomic: one thread each
  for (int call = 0; call < 200; ++call) {
    parallel.Run(30, [&](int worker, int) { ++of_worker[static_cast<size_t>(worker)]; });
  }
  EXPECT_EQ(of_worker[0] + of_worker[1] + of_worker[2], 200 * 30);
}

// a helper that is late from the call before takes an index of the next one before it is woken
TEST(ParallelFor, IndicesMayWaitForEachOther) {
  for (const int num_threads : {3, 4, 7}) {
    ParallelFor parallel(num_threads);
    SpinBarrier barrier;
    barrier.set_num_threads(num_threads);
    int finished = 0;  // by index 0
    for (int call = 0; call < 2000; ++call) {
      parallel.Run(2, [](int, int) {});
      parallel.Run(num_threads, [&](int, int index) {
        barrier.Wait();
        if (index == 0) ++finished;
      });
    }
    EXPECT_EQ(finished, 2000);
  }
}

// the threads of a new one may stand where the child has the lost ones of the old one
TEST(ParallelFor, AForkedChildReplacesIt) {
#ifdef PYFASTENV_TSAN
  GTEST_SKIP() << "ThreadSanitizer does not follow a threaded process through fork()";
#endif
  auto parallel = std::make_unique<ParallelFor>(4);
  EXPECT_TRUE(testing::InForkedChild([&] {
    ParallelFor fresh(4);
    parallel.reset();
    std::vector<int> runs(8);
    fresh.Run(8, [&](int, int index) { ++runs[static_cast<size_t>(index)]; });
    return runs == std::vector<int>(8, 1);
  }));
}

}  // namespace
}  // namespace pyfastenv
