#include "core/failure_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

namespace pyfastenv {
namespace {

void Fail(FailureList& failures, int32_t id) {
  try {
    throw std::runtime_error("of " + std::to_string(id));
  } catch (...) {
    failures.AddCurrentException(id);
  }
}

TEST(FailureList, GivesMessagesOnce) {
  FailureList failures;
  EXPECT_FALSE(failures.any());
  Fail(failures, 3);
  Fail(failures, 1);
  const int32_t one[] = {1};
  const auto taken = failures.Take(one);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].message, "of 1");
  EXPECT_TRUE(failures.any());
  const int32_t three[] = {3};
  failures.Take(three);
  EXPECT_FALSE(failures.any());
}

TEST(FailureList, HasWhatWasPutBack) {
  FailureList failures;
  Fail(failures, 5);
  const int32_t ids[] = {5};
  const auto taken = failures.Take(ids);
  failures.PutBack(taken);
  EXPECT_TRUE(failures.any());
  EXPECT_EQ(failures.Take(ids)[0].message, "of 5");
  EXPECT_FALSE(failures.any());
}

TEST(FailureList, GivesAllInTheOrderOfIds) {
  FailureList failures;
  EXPECT_TRUE(failures.TakeAll().empty());
  for (const int32_t id : {4, 2, 9}) Fail(failures, id);
  const auto taken = failures.TakeAll();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].env_id, 2);
  EXPECT_EQ(taken[2].message, "of 9");
  EXPECT_FALSE(failures.any());
}

// One thread's Take must not hide what another is adding.
TEST(FailureList, IsNotEmptiedUnderAnAdder) {
  FailureList failures;
  std::atomic<int> hidden{0};
  const auto add_and_take = [&](int32_t id) {
    for (int i = 0; i < 20'000; ++i) {
      Fail(failures, id);
      if (!failures.any()) ++hidden;
      failures.Take({&id, 1});
    }
  };
  std::thread first(add_and_take, 1), second(add_and_take, 2);
  first.join();
  second.join();
  EXPECT_EQ(hidden, 0);
  EXPECT_FALSE(failures.any());
}

}  // namespace
}  // namespace pyfastenv
