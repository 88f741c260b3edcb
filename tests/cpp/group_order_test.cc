#include "core/group_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "npy/random.h"

namespace pyfastenv {
namespace {

std::vector<int32_t> Order(const GroupOrder& order, int begin, int end) {
  std::vector<int32_t> ids;
  for (int position = begin; position < end; ++position) ids.push_back(order.At(position));
  return ids;
}

TEST(GroupOrderTest, BeginsAsNumbered) {
  const GroupOrder order(3);
  EXPECT_EQ(Order(order, 0, 3), (std::vector<int32_t>{0, 1, 2}));
}

TEST(GroupOrderTest, PutsTogetherWhatHasAsManyRows) {
  GroupOrder order(7);
  const int rows[] = {4, 0, 100, 4, 0, 99, 7};
  for (int id = 0; id < 7; ++id) order.Note(id, rows[id]);
  order.Sort(0, 7);
  // very many are alike
  EXPECT_EQ(Order(order, 0, 7), (std::vector<int32_t>{1, 4, 0, 3, 6, 2, 5}));
  order.Note(1, 5);
  order.Sort(0, 7);
  EXPECT_EQ(Order(order, 0, 7), (std::vector<int32_t>{4, 0, 3, 1, 6, 2, 5}));
}

TEST(GroupOrderTest, LeavesIdsToTheirPart) {
  GroupOrder order(6);
  for (int id = 0; id < 6; ++id) order.Note(id, 6 - id);
  order.Sort(0, 3);
  order.Sort(3, 6);
  EXPECT_EQ(Order(order, 0, 6), (std::vector<int32_t>{2, 1, 0, 5, 4, 3}));
}

TEST(GroupOrderTest, HasEveryIdOnce) {
  constexpr int kCount = 5000;
  GroupOrder order(kCount);
  const uint32_t seed[] = {1};
  Random random(seed);
  for (int round = 0; round < 5; ++round) {
    for (int id = 0; id < kCount; ++id) {
      order.Note(id, static_cast<int>(random.Uniform(0.0, 80.0)));
    }
    order.Sort(7, kCount);
    std::vector<int32_t> ids = Order(order, 7, kCount);
    std::sort(ids.begin(), ids.end());
    std::vector<int32_t> expected(kCount - 7);
    std::iota(expected.begin(), expected.end(), 7);
    ASSERT_EQ(ids, expected);
  }
}

}  // namespace
}  // namespace pyfastenv
