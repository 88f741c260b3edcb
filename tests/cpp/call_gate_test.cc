// CallGate: who may call now.
#include "core/call_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "counting_env.h"
#include "forked_child.h"

namespace pyfastenv {
namespace {

using testing::ExpectUsageError;
using Code = UsageError::Code;

void Nothing() {}

TEST(CallGate, PassesOfOtherThreadsAndOtherGatesDoNotMatter) {
  CallGate gate;
  CallGate other;
  const CallGate::Pass outer(gate);
  const CallGate::Pass inner(other);
  std::thread([&] { const CallGate::Pass pass(gate); }).join();
}

TEST(CallGate, ACallInsideACallIsRefused) {
  CallGate gate;
  CallGate other;
  const CallGate::Pass outer(gate);
  const CallGate::Pass between(other);
  ExpectUsageError(Code::kBusy, "signal handler", [&] { const CallGate::Pass pass(gate); });
  ExpectUsageError(Code::kBusy, "signal handler", [&] { gate.Close(Nothing, Nothing); });
  EXPECT_FALSE(gate.closed());
}

TEST(CallGate, ARefusedCallLeavesNothingBehind) {
  CallGate gate;
  {
    const CallGate::Pass outer(gate);
    ExpectUsageError(Code::kBusy, "", [&] { const CallGate::Pass pass(gate); });
  }
  gate.Close(Nothing, Nothing);  // would wait for ever for a call that was counted
  for (int i = 0; i < 3; ++i) {
    ExpectUsageError(Code::kClosed, "closed", [&] { const CallGate::Exclusive pass(gate); });
  }
}

TEST(CallGate, CloseWakesThenWaitsThenFinishesOnce) {
  CallGate gate;
  std::atomic<bool> inside{false};
  std::atomic<bool> leave{false};
  std::atomic<bool> left{false};
  std::thread caller([&] {
    const CallGate::Pass pass(gate);
    inside = true;
    while (!leave) std::this_thread::yield();
    left = true;
  });
  while (!inside) std::this_thread::yield();
  std::atomic<int> finished{0};
  testing::RunThreads(4, [&](int /*i*/) {
    gate.Close([&] { leave = true; },
               [&] {
                 EXPECT_TRUE(left);
                 ++finished;
               });
    EXPECT_EQ(finished, 1);
  });
  caller.join();
  EXPECT_TRUE(gate.closed());
}

TEST(CallGate, ExclusiveCallsRunOneAtATime) {
  CallGate gate;
  int counter = 0;  // a data race under ThreadSanitizer if they do not
  testing::RunThreads(4, [&](int /*i*/) {
    for (int k = 0; k < 500; ++k) {
      const CallGate::Exclusive exclusive(gate);
      ++counter;
    }
  });
  EXPECT_EQ(counter, 2000);
}

TEST(CallGate, SendersPassWhileAReceiverHasWorkerZero) {
  CallGate gate;
  const CallGate::Pass receiver(gate);
  CallGate::TryWorkerZero worker_zero(gate);
  ASSERT_TRUE(worker_zero.has());
  std::thread([&] {
    const CallGate::Pass sender(gate);
    const CallGate::RowsOnly rows(gate);
    CallGate::TryWorkerZero second(gate);
    EXPECT_FALSE(second.has());
  }).join();
}

#ifndef PYFASTENV_TSAN
TEST(CallGate, AForkedChildIsRefusedAndMayClose) {
  CallGate gate;
  // in the child, a call of the parent's never ends: Close must not wait for it
  std::atomic<bool> inside{false};
  std::atomic<bool> leave{false};
  std::thread caller([&] {
    const CallGate::Pass pass(gate);
    inside = true;
    leave.wait(false);
  });
  while (!inside) std::this_thread::yield();
  EXPECT_TRUE(testing::InForkedChild([&] {
    const auto refusal =
        testing::RefusalOf({Code::kForked}, [&] { const CallGate::Pass pass(gate); });
    bool called = false;
    gate.Close([&] { called = true; }, [&] { called = true; });
    return refusal == Code::kForked && !called && gate.forked() && gate.closed();
  }));
  EXPECT_FALSE(gate.forked());
  leave = true;
  leave.notify_one();
  caller.join();
}
#endif

}  // namespace
}  // namespace pyfastenv
