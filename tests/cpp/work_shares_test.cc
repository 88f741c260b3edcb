// WorkShares: every item is taken once, by whoever has time.
#include "core/work_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace pyfastenv {
namespace {

constexpr int kMax = 8;

std::vector<int32_t> TakeAll(WorkShares& shares, int worker, int max = kMax) {
  std::vector<int32_t> all;
  int32_t items[kMax];
  for (int taken = shares.Take(worker, max, items); taken > 0;
       taken = shares.Take(worker, max, items)) {
    all.insert(all.end(), items, items + taken);
  }
  return all;
}

TEST(WorkShares, OneWorkerTakesItsOwnShareFirst) {
  WorkShares shares(3);
  shares.Deal(9);
  EXPECT_EQ(TakeAll(shares, 1), (std::vector<int32_t>{3, 4, 5, 6, 7, 8, 0, 1, 2}));
  EXPECT_TRUE(TakeAll(shares, 0).empty());
}

TEST(WorkShares, SharesOfManyWorkersCoverAnyCount) {
  for (const int workers : {1, 2, 63, 64, 65, 200}) {
    WorkShares shares(workers);
    for (const int count : {0, 1, 7, 64, 1000}) {
      shares.Deal(count);
      std::vector<int32_t> all = TakeAll(shares, workers - 1);
      std::sort(all.begin(), all.end());
      std::vector<int32_t> expected(static_cast<size_t>(count));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected) << workers << " workers";
    }
  }
}

TEST(WorkShares, WhatIsGivenBackIsTakenAgainAfterTheRest) {
  WorkShares shares(2);
  shares.ReserveGiveBack(4);
  shares.Deal(4);
  int32_t items[kMax];
  ASSERT_EQ(shares.Take(0, 1, items), 1);
  EXPECT_TRUE(shares.GiveBack(0, {items, 1}));
  EXPECT_EQ(TakeAll(shares, 0), (std::vector<int32_t>{1, 0, 2, 3}));
}

TEST(WorkShares, DropCountsWhatIsLeftAndEndsGivingBack) {
  WorkShares shares(2);
  shares.ReserveGiveBack(6);
  shares.Deal(6);
  int32_t items[kMax];
  ASSERT_EQ(shares.Take(0, 2, items), 2);
  EXPECT_TRUE(shares.GiveBack(0, {items, 1}));
  EXPECT_EQ(shares.Drop(), 5);
  EXPECT_FALSE(shares.GiveBack(0, {items + 1, 1}));
  EXPECT_TRUE(TakeAll(shares, 1).empty());
  shares.Deal(2);
  EXPECT_EQ(TakeAll(shares, 1).size(), 2U);
}

TEST(WorkShares, ManyThreadsRunEveryItemItsNumberOfTimes) {
  constexpr int kWorkers = 7;
  constexpr int kItems = 500;
  constexpr int kRounds = 20;
  WorkShares shares(kWorkers);
  shares.ReserveGiveBack(kItems);
  std::vector<int> runs(kItems);  // of whoever holds the item: a race if two do
  shares.Deal(kItems);
  std::atomic<int> finished{0};
  const auto work = [&](int worker) {
    int32_t items[kMax];
    while (finished < kItems) {
      const int taken = shares.Take(worker, 1 + worker, items);
      size_t again = 0;
      for (int i = 0; i < taken; ++i) {
        int& count = runs[static_cast<size_t>(items[i])];
        if (++count < kRounds) {
          items[again++] = items[i];
        } else {
          ++finished;
        }
      }
      ASSERT_TRUE(shares.GiveBack(worker, {items, again}));
    }
  };
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) threads.emplace_back(work, worker);
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](int n) { return n == kRounds; }));
}

}  // namespace
}  // namespace pyfastenv
