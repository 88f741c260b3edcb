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
