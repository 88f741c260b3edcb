// IdQueue: as a deque; what Clear leaves.
#include "core/id_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace pyfastenv {
namespace {

std::vector<int32_t> Pop(IdQueue& queue, size_t max) {
  std::vector<int32_t> out(max, -1);
  out.resize(queue.Pop(max, out.data()));
  return out;
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
