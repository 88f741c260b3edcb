#include "envs/mujoco/miss_record.h"

#include <gtest/gtest.h>

namespace pyfastenv {
namespace {

constexpr int kGroup = 8;

// Runs so many groups, of which `missed` steps each are left to mj_step; returns how many were
// tried.
int64_t TryGroups(MissRecord& record, int64_t groups, int missed) {
  int64_t tried = 0;
  for (int64_t i = 0; i < groups; ++i) {
    if (!record.Tries(kGroup)) continue;
    record.Count(kGroup, missed);
    ++tried;
  }
  return tried;
}

TEST(MissRecord, LanesThatMissNowAndThenAreAlwaysTried) {
  MissRecord record;
  EXPECT_EQ(TryGroups(record, 1000, 0), 1000);
  EXPECT_EQ(TryGroups(record, 1000, 6), 1000);
}

TEST(MissRecord, LanesThatMissNearlyAlwaysAreSeldomTried) {
  MissRecord record;
  EXPECT_LT(TryGroups(record, 100'000, kGroup), 100'000 / 30);
}

TEST(MissRecord, LanesThatAreOfUseAgainAreTriedAgain) {
  MissRecord record;
  TryGroups(record, 100'000, kGroup);
  TryGroups(record, 2 * MissRecord::kLongestPause / kGroup, 0);
  EXPECT_EQ(TryGroups(record, 1000, 0), 1000);
}

}  // namespace
}  // namespace pyfastenv
