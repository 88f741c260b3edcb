// ThreadPool: every Wake is followed by a full run of every helper.
#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

namespace pyfastenv {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// runs of each worker, counted at their beginning and end
class Runs {
 public:
  explicit Runs(int num_threads) : begun_(Size(num_threads)), ended_(Size(num_threads)) {}

  void operator()(int worker) {
    begun_[Size(worker)].fetch_add(1);
    ended_[Size(worker)].fetch_add(1);
  }
  int begun(int worker) const { return begun_[Size(worker)].load(); }
  int ended(int worker) const { return ended_[Size(worker)].load(); }

  /// Waits until `worker` has ended a run that began after `before` runs had begun.
  bool WaitForRunAfter(int worker, int before) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (ended(worker) <= before) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  static size_t Size(int n) { return static_cast<size_t>(n); }
  std::vector<std::atomic<int>> begun_, ended_;
};

// wakes again and again, pausing so that helpers are met running, spinning and parked
void ExpectARunAfterEveryWake(int num_threads, int wakes, microseconds pause) {
  Runs runs(num_threads);
  ThreadPool pool(num_threads, [&](int worker) { runs(worker); });
  for (int i = 0; i < wakes; ++i) {
    std::vector<int> before;
    for (int worker = 0; worker < num_threads; ++worker) before.push_back(runs.begun(worker));
    pool.WakeAll();
    for (int worker = 1; worker < num_threads; ++worker) {
      ASSERT_TRUE(runs.WaitForRunAfter(worker, before[static_cast<size_t>(worker)]));
    }
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
  EXPECT_EQ(runs.begun(0), 0);  // worker 0 is the caller
}

TEST(ThreadPool, EveryWakeOfSpinningHelpersIsFollowedByARun) {
  ExpectARunAfterEveryWake(3, 1000, microseconds(0));
}

// the pause is about the helpers' spin time: the most likely place for a lost wake-up
TEST(ThreadPool, EveryWakeOfParkingHelpersIsFollowedByARun) {
  ExpectARunAfterEveryWake(3, 300, microseconds(40));
}

TEST(ThreadPool, EveryWakeOfParkedHelpersIsFollowedByARun) {
  ExpectARunAfterEveryWake(7, 100, microseconds(400));
}

// the tree in which helpers wake each other reaches those that are meant, and nobody else
TEST(ThreadPool, AWakeOfSomeIsFollowedByARunOfTheFirstOnes) {
  constexpr int kThreads = 40;
  Runs runs(kThreads);
  ThreadPool pool(kThreads, [&](int worker) { runs(worker); });
  for (const int helpers : {1, 2, 3, 5, 8, 21, 39, 100}) {
    std::vector<int> before;
    for (int worker = 0; worker < kThreads; ++worker) before.push_back(runs.begun(worker));
    pool.Wake(helpers);
    for (int worker = 1; worker < kThreads; ++worker) {
      const int runs_before = before[static_cast<size_t>(worker)];
      if (worker <= helpers) {
        ASSERT_TRUE(runs.WaitForRunAfter(worker, runs_before));
      } else {
        EXPECT_EQ(runs.begun(worker), runs_before);
      }
    }
  }
}

// a Wake while work runs is not lost: the work runs once more, from its beginning
TEST(ThreadPool, AWakeDuringWorkRunsItAgain) {
  std::atomic<int> begun{0};
  std::atomic<bool> hold{true};
  ThreadPool pool(2, [&](int) {
    begun.fetch_add(1);
    while (hold.load()) std::this_thread::yield();
  });
  pool.WakeAll();
  while (begun.load() == 0) std::this_thread::yield();
  pool.WakeAll();
  hold.store(false);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (begun.load() < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(begun.load(), 2);
}

// what the caller wrote before Wake is seen by the work, without any other synchronisation
TEST(ThreadPool, WakePublishesTheCallersWrites) {
  int message = 0;
  std::atomic<int> seen{0};
  ThreadPool pool(2, [&](int) { seen.store(message); });
  for (int i = 1; i <= 300; ++i) {
    message = i;
    pool.WakeAll();
    while (seen.load() != i) std::this_thread::yield();
  }
}

TEST(ThreadPool, TheDestructorWaitsForRunningWork) {
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  auto pool = std::make_unique<ThreadPool>(3, [&](int) {
    begun.fetch_add(1);
    std::this_thread::sleep_for(milliseconds(20));
    ended.fetch_add(1);
  });
  pool->WakeAll();
  while (begun.load() < 2) std::this_thread::yield();
  pool.reset();
  EXPECT_EQ(ended.load(), begun.load());
}

TEST(ThreadPool, WorkMayWakeThePoolWhileItStops) {
  std::atomic<int> begun{0};
  std::atomic<bool> go{false};
  std::unique_ptr<ThreadPool> pool;  // helpers read it
  pool = std::make_unique<ThreadPool>(3, [&](int) {
    begun.fetch_add(1);
    while (!go.load()) std::this_thread::yield();
    pool->WakeAll();
  });
  pool->WakeAll();
  while (begun.load() < 2) std::this_thread::yield();
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(5));
    go.store(true);
  });
  pool->Stop();
  late.join();
  const int runs = begun.load();
  pool->WakeAll();  // nobody is there
  pool->Stop();
  EXPECT_EQ(begun.load(), runs);
}

// Wake may be called from any thread
TEST(ThreadPool, WakesFromManyThreads) {
  Runs runs(3);
  ThreadPool pool(3, [&](int worker) { runs(worker); });
  std::vector<std::thread> wakers;
  for (int i = 0; i < 3; ++i) {
    wakers.emplace_back([&] {
      for (int k = 0; k < 300; ++k) pool.WakeAll();
    });
  }
  for (auto& waker : wakers) waker.join();
  const int before[] = {0, runs.begun(1), runs.begun(2)};
  pool.WakeAll();
  for (int worker = 1; worker < 3; ++worker) {
    EXPECT_TRUE(runs.WaitForRunAfter(worker, before[worker]));
  }
}

}  // namespace
}  // namespace pyfastenv
