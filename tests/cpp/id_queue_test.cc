// IdQueue: order, capacity, wrap-around.
#include "core/id_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <random>
#include <vector>

namespace pyfastenv {
namespace {

std::vector<int32_t> Pop(IdQueue& queue, size_t max) {
  std::vector<int32_t> out(max, -1);
  out.resize(queue.Pop(max, out.data()));
  return out;
}

TEST(IdQueue, IsFirstInFirstOut) {
  IdQueue queue(4);
  for (const int32_t id : {3, 1, 2}) queue.Push(id);
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_EQ(Pop(queue, 2), (std::vector<int32_t>{3, 1}));
  EXPECT_EQ(Pop(queue, 5), (std::vector<int32_t>{2}));
  EXPECT_EQ(queue.size(), 0U);
}

TEST(IdQueue, PopOfAnEmptyQueueWritesNothing) {
  IdQueue queue(2);
  int32_t untouched = 9;
  EXPECT_EQ(queue.Pop(1, &untouched), 0U);
  EXPECT_EQ(untouched, 9);
}

TEST(IdQueue, HoldsItsCapacityAtEveryStartingPoint) {
  constexpr int32_t kCapacity = 5;
  IdQueue queue(kCapacity);
  std::vector<int32_t> ids(kCapacity);
  std::iota(ids.begin(), ids.end(), 10);
  for (int start = 0; start < 2 * kCapacity; ++start) {
    for (const int32_t id : ids) queue.Push(id);
    EXPECT_EQ(Pop(queue, kCapacity), ids);
    queue.Push(0);  // moves the start by one
    EXPECT_EQ(Pop(queue, 1).size(), 1U);
  }
}

TEST(IdQueue, ClearEmptiesAfterWrapAround) {
  IdQueue queue(3);
  for (const int32_t id : {1, 2, 3}) queue.Push(id);
  Pop(queue, 2);
  queue.Push(4);
  queue.Clear();
  EXPECT_EQ(queue.size(), 0U);
  for (const int32_t id : {5, 6, 7}) queue.Push(id);
  EXPECT_EQ(Pop(queue, 3), (std::vector<int32_t>{5, 6, 7}));
}

// any sequence of pushes and pops behaves as a std::deque does
TEST(IdQueue, AgreesWithADeque) {
  constexpr size_t kCapacity = 7;
  IdQueue queue(kCapacity);
  std::deque<int32_t> model;
  std::mt19937 random(1);
  for (int32_t i = 0; i < 2000; ++i) {
    if (random() % 2 == 0 && model.size() < kCapacity) {
      queue.Push(i);
      model.push_back(i);
    } else {
      const size_t max = random() % 4;
      for (const int32_t id : Pop(queue, max)) {
        ASSERT_EQ(id, model.front());
        model.pop_front();
      }
    }
    ASSERT_EQ(queue.size(), model.size());
  }
}

TEST(IdQueue, OfNoCapacityIsEmpty) {
  IdQueue queue(0);
  EXPECT_TRUE(Pop(queue, 3).empty());
}

}  // namespace
}  // namespace pyfastenv
