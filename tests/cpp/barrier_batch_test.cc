// BarrierBatch: a call's work from handing it out to its last item.
#include "core/barrier_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "counting_env.h"

namespace pyfastenv {
namespace {

using std::chrono::milliseconds;

bool Never() { return false; }

// Runs every item `rounds` times.
class Counting : public BarrierBatch::Work {
 public:
  Counting(int count, int rounds, int chunk, milliseconds nap = milliseconds(0))
      : runs(static_cast<size_t>(count)), rounds_(rounds), chunk_(chunk), nap_(nap) {}

  int Chunk() const override { return chunk_; }
  int Run(int worker, std::span<int32_t> items) noexcept override {
    EXPECT_LE(static_cast<int>(items.size()), chunk_);
    if (worker > 0) helped = true;
    size_t again = 0;
    for (const int32_t item : items) {
      std::this_thread::sleep_for(nap_);
      if (++runs[static_cast<size_t>(item)] < rounds_) items[again++] = item;
    }
    return static_cast<int>(again);
  }

  std::vector<int> runs;  // of whoever holds the item
  std::atomic<bool> helped{false};

 private:
  const int rounds_;
  const int chunk_;
  const milliseconds nap_;
};

class Pool {
 public:
  explicit Pool(int num_threads) {
    pool = std::make_unique<ThreadPool>(num_threads, [this](int worker) {
      while (batch->RunSome(worker)) {
      }
    });
    batch = std::make_unique<BarrierBatch>(*pool, num_threads);
  }

  bool Run(Counting& work, const Interrupted& interrupted = Never, int helpers = 100) {
    BarrierBatch::Options options;
    options.count = static_cast<int>(work.runs.size());
    options.helpers = helpers;
    options.spin = std::chrono::microseconds(20);
    options.gives_back = true;
    return batch->Run(work, options, interrupted);
  }

  std::unique_ptr<BarrierBatch> batch;
  std::unique_ptr<ThreadPool> pool;  // last: its threads use the batch
};

class BatchThreads : public ::testing::TestWithParam<int> {};

TEST_P(BatchThreads, EveryItemIsRunItsNumberOfTimes) {
  Pool pool(GetParam());
  for (int call = 0; call < 300; ++call) {
    Counting work(call % 40, 1 + call % 3, 1 + call % 5);
    ASSERT_TRUE(pool.Run(work));
    for (const int runs : work.runs) ASSERT_EQ(runs, 1 + call % 3);
  }
}

TEST_P(BatchThreads, AnInterruptedCallStopsAtTheNextBoundary) {
  Pool pool(GetParam());
  const double seconds = testing::QuickestOfThree([&] {
    Counting endless(20, 1 << 30, 1, milliseconds(1));
    const testing::Stopwatch watch;
    int polls = 0;
    EXPECT_FALSE(pool.Run(endless, [&] { return ++polls == 2; }));
    EXPECT_EQ(polls, 2);  // and is not asked again
    return watch.seconds();
  });
  EXPECT_LT(seconds, 1.0);
  Counting work(20, 1, 1);  // nothing is left over for the next call
  EXPECT_TRUE(pool.Run(work));
  EXPECT_TRUE(std::all_of(work.runs.begin(), work.runs.end(), [](int n) { return n == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Pools, BatchThreads, ::testing::Values(1, 2, 3, 7));

TEST(BarrierBatch, HelpersHelp) {
  Pool pool(2);
  Counting work(500, 1, 1, milliseconds(2));  // a second alone: the helper may be late
  ASSERT_TRUE(pool.Run(work));
  EXPECT_TRUE(work.helped);
}

TEST(BarrierBatch, NobodyIsWokenWhoIsNotAskedFor) {
  Pool pool(3);
  pool.pool->set_spin(std::chrono::nanoseconds(0));
  Counting work(20, 1, 1, milliseconds(1));
  ASSERT_TRUE(pool.Run(work, Never, 0));
  EXPECT_FALSE(work.helped);
}

TEST(BarrierBatch, ACallThatWaitsForAHelperIsInterruptedToo) {
  // the caller has nothing to do: the only item is another's
  class OneLong final : public BarrierBatch::Work {
   public:
    int Chunk() const override { return 1; }
    int Run(int worker, std::span<int32_t> items) noexcept override {
      if (items[0] == 0 && worker == 0) {
        // leaves the other item to the helper
        while (!taken) std::this_thread::yield();
      } else {
        taken = true;
        while (!asked) std::this_thread::yield();
      }
      return 0;
    }
    std::atomic<bool> taken{false};
    std::atomic<bool> asked{false};
  };
  Pool pool(2);
  OneLong work;
  BarrierBatch::Options options;
  options.count = 2;
  options.helpers = 1;
  EXPECT_FALSE(pool.batch->Run(work, options, [&] {
    work.asked = true;
    return true;
  }));
}

}  // namespace
}  // namespace pyfastenv
