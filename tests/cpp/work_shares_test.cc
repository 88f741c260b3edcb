// WorkShares: every item is taken once, by whoever has time.
#include "core/work_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
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

}  // namespace
}  // namespace pyfastenv
