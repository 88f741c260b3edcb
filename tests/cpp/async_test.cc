// VectorEnv's asynchronous calls: Send, SendReset, Wait, Gather.
#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <set>
#include <tuple>

#include "counting_env.h"

namespace pyfastenv {
namespace {

using namespace pyfastenv::testing;  // NOLINT

constexpr double kPatience = 10.0;  // seconds, then a hang becomes a failure

// ---- parallel equals serial ----

/// RunSteps' trace, made of requests sent in a random order in two parts and received in pieces.
std::vector<Results> RunRequests(AutoresetMode mode, int num_threads) {
  Runner runner(MakeOptions(kTraceEnvs, num_threads, mode, kTraceMaxEpisodeSteps));
  std::mt19937 random(5);
  const auto receive = [&](size_t count) {
    while (count > 0) {
      const auto ready =
          runner.Receive(1 + static_cast<int>(random() % 4), 4 + static_cast<int>(random() % 4));
      ASSERT_TRUE(ready.failures.empty());
      count -= ready.ids.size();
    }
  };
  runner.Seed(7);
  runner.SendReset(runner.all);
  receive(runner.all.size());
  std::vector<Results> trace = {runner.out};
  for (int t = 0; t < kTraceSteps; ++t) {
    auto ids = runner.all;
    std::shuffle(ids.begin(), ids.end(), random);
    const auto middle = ids.begin() + static_cast<ptrdiff_t>(random() % ids.size());
    const std::vector<int32_t> first(ids.begin(), middle);
    const std::vector<int32_t> second(middle, ids.end());
    runner.Send(first, ActionsOf(t, first));
    runner.Send(second, ActionsOf(t, second));
    receive(ids.size());
    trace.push_back(runner.out);
    if (mode == AutoresetMode::kDisabled) {
      const auto ended = runner.Ended();
      runner.SendReset(ended);
      receive(ended.size());
      trace.push_back(runner.out);
    }
  }
  return trace;
}

using AsyncModesAndThreads = ModesAndThreads;

TEST_P(AsyncModesAndThreads, RequestsEqualSerialSteps) {
  const auto [mode, num_threads] = GetParam();
  EXPECT_TRUE(RunRequests(mode, num_threads) == RunSteps(mode, 1));
}

INSTANTIATE_TEST_SUITE_P(All, AsyncModesAndThreads, kModesAndThreads, NameOf);

class Async : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Async, ::testing::Values(1, 3, 7));

// environments at different paces, each sent again as soon as it is received: every one lives
// through the episodes it would have had alone
TEST_P(Async, FreeRunningEnvironmentsEqualSerialSteps) {
  constexpr int kEnvs = 11;
  constexpr int kSteps = 30;
  Runner runner(MakeOptions(kEnvs, GetParam()));
  runner.Seed(7);
  runner.SendReset(runner.all);
  std::vector<std::vector<Results>> histories(kEnvs);
  int unfinished = kEnvs;
  while (unfinished > 0) {
    const auto ready = runner.Receive(std::min(3, unfinished), 5);
    std::vector<int32_t> again;
    std::vector<float> actions;
    for (const int32_t id : ready.ids) {
      const auto index = static_cast<size_t>(id);
      histories[index].push_back(runner.out.Slot(index));
      const int t = static_cast<int>(histories[index].size()) - 1;
      if (t == kSteps) {
        --unfinished;
        continue;
      }
      again.push_back(id);
      actions.push_back(ActionOf(t, id));
    }
    runner.Send(again, actions);
  }

  Started serial(MakeOptions(kEnvs, 1));
  for (size_t t = 0; t <= kSteps; ++t) {
    for (size_t i = 0; i < kEnvs; ++i) ASSERT_TRUE(histories[i][t] == serial.out.Slot(i));
    serial.Step(ActionsOf(static_cast<int>(t), serial.all));
  }
}

// ---- what Wait gives ----

// at least min, at most max, each once, and nothing lost
TEST_P(Async, MinAndMax) {
  Started runner(MakeOptions(20, GetParam()));
  for (int round = 0; round < 20; ++round) {
    runner.SendAll(kBusyWork);
    std::set<int32_t> seen;
    while (seen.size() < 20) {
      const size_t left = 20 - seen.size();
      const auto ready = runner.Receive(4, 6);
      EXPECT_GE(ready.ids.size(), std::min<size_t>(4, left));  // never more than is under way
      EXPECT_LE(ready.ids.size(), 6U);
      seen.insert(ready.ids.begin(), ready.ids.end());
    }
  }
}

// fewer may be asked for than have been sent, and all: min_envs 0
TEST_P(Async, ZeroMeansAllUnderWay) {
  Started runner(MakeOptions(9, GetParam()));
  runner.Send({1, 3, 5}, {1, 2, 3});
  EXPECT_EQ(runner.Receive().ids.size(), 3U);
  runner.SendAll(0.5F);
  EXPECT_EQ(runner.Receive(100).ids.size(), 9U);
}

// at the timeout what has arrived is given, at least one; the rest comes later
TEST_P(Async, TimeoutGivesAtLeastOneAndLosesNothing) {
  Started runner(MakeOptions(20, GetParam()));
  std::vector<float> actions(20, Nap(15));
  actions[0] = 0.5F;
  // a receiver held up for longer than all naps finds everything there: not every time
  int64_t rounds = 0;
  int calls = 0;
  do {
    runner.Send(runner.all, actions);
    std::set<int32_t> seen;
    for (calls = 0; seen.size() < 20; ++calls) {
      const auto ready = runner.Receive(0, 0, 0.001);
      EXPECT_FALSE(ready.ids.empty());
      seen.insert(ready.ids.begin(), ready.ids.end());
    }
    ++rounds;
  } while (calls == 1 && rounds < 50);
  EXPECT_GT(calls, 1);
  EXPECT_EQ(runner.out.counts, std::vector<int64_t>(20, rounds));
}

// a timeout long in the future changes nothing
TEST_P(Async, ALongTimeoutIsNotWaitedFor) {
  Started runner(MakeOptions(4, GetParam()));
  const double seconds = QuickestOfThree([&] {
    runner.SendAll(0.5F);
    const Stopwatch watch;
    EXPECT_EQ(runner.Receive(0, 0, 1e300).ids.size(), 4U);
    return watch.seconds();
  });
  EXPECT_LT(seconds, 5.0);
}

// an interrupted Wait takes nothing; the next one gets everything
TEST_P(Async, InterruptedWaitLosesNothing) {
  Started runner(MakeOptions(9, GetParam()));
  runner.SendAll(Nap(60));
  const auto ready = runner.Receive(0, 0, std::nullopt, [] { return true; });
  EXPECT_TRUE(ready.interrupted);
  EXPECT_TRUE(ready.ids.empty());
  EXPECT_EQ(runner.Receive().ids.size(), 9U);
  EXPECT_EQ(runner.out.counts, std::vector<int64_t>(9, 1));
}

// actions are copied by Send: the caller's array may go
TEST_P(Async, SendCopiesTheActions) {
  Started runner(MakeOptions(6, GetParam()));
  {
    std::vector<float> actions(6, 3.0F);
    runner.Send(runner.all, actions);
    std::fill(actions.begin(), actions.end(), kThrow);
  }
  EXPECT_TRUE(runner.Receive().failures.empty());
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(runner.out.terms[2 * i], 3.0);
}

// while some resets are under way, others can be stepped, with actions of any dtype
TEST_P(Async, Int64ActionsBesideResets) {
  Runner runner(MakeOptions(4, GetParam()));
  runner.Seed(7);
  runner.SendReset(runner.all);
  const auto ready = runner.Receive(1, 2);
  const std::vector<int64_t> actions(ready.ids.size(), 2);
  runner.env.Send(ready.ids, {actions.data(), DType::kInt64, sizeof(int64_t)});
  EXPECT_EQ(runner.Receive().ids.size(), 4U);
  for (const int32_t id : ready.ids) EXPECT_EQ(runner.out.terms[2 * static_cast<size_t>(id)], 2.0);
}

// ---- requests that are refused ----

// results taken by Wait count as under way until they are gathered
TEST_P(Async, UngatheredResultsAreBusy) {
  Started runner(MakeOptions(2, GetParam()));
  runner.SendAll(0.5F);
  auto ready = runner.env.Receive({0, 0, std::nullopt}, Never);
  ExpectUsageError(Code::kBusy, "environments 0, 1", [&] { runner.SendAll(0.5F); });
  runner.env.Gather(ready, Results(2).Views());
  runner.SendAll(0.5F);
  runner.Receive();
}

// free environments can be read while others are under way; a reset must wait for all
TEST_P(Async, StateOfOthersBesideRequests) {
  Started runner(MakeOptions(6, GetParam()));
  for (int i = 0; i < 100; ++i) {
    runner.Send({0, 1, 2}, {kBusyWork, 1.0F, kBusyWork});
    ExpectUsageError(Code::kBusy, "reset", [&] { runner.Reset({3, 4}); });
    runner.State({5});
    EXPECT_EQ(runner.Receive().ids.size(), 3U);
  }
}

// ---- Close ----

// queued work is dropped
TEST_P(Async, CloseDropsTheQueue) {
  const double seconds = QuickestOfThree([&] {
    Started runner(MakeOptions(60, GetParam()));
    runner.SendAll(Nap(100));  // the closing thread may be held up for several
    const Stopwatch watch;
    runner.env.Close();
    const double took = watch.seconds();
    EXPECT_LT(runner.env.stats().steps, 60);
    ExpectUsageError(Code::kClosed, "closed", [&] { runner.Receive(); });
    return took;
  });
  EXPECT_LT(seconds, 0.5);
}

// a thread inside Wait is told
TEST_P(Async, CloseWhileAnotherThreadWaits) {
  Started runner(MakeOptions(60, GetParam()));
  std::thread waiter([&] {
    ExpectUsageError(Code::kClosed, "closed", [&] {
      while (true) {
        runner.SendAll(Nap(10));
        runner.Receive();
      }
    });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(15));
  runner.env.Close();
  waiter.join();
}

// results that nobody received do not keep Close or the destructor waiting
TEST_P(Async, CloseWithResultsNotReceived) {
  for (int i = 0; i < 50; ++i) {
    Started runner(MakeOptions(8, GetParam()));
    runner.SendAll(kBusyWork);
    if (i % 2 == 0) runner.Receive(1, 2);
  }
}

// ---- several threads ----

// one thread sends, another receives
TEST_P(Async, SendBesideWait) {
  constexpr int kEnvs = 8;
  constexpr int kTotal = 2000;
  Started runner(MakeOptions(kEnvs, GetParam()));
  std::mutex mutex;
  std::deque<int32_t> free(runner.all.begin(), runner.all.end());
  std::thread sender([&] {
    for (int sent = 0; sent < kTotal;) {
      std::vector<int32_t> ids;
      {
        std::lock_guard lock(mutex);
        while (!free.empty() && sent + static_cast<int>(ids.size()) < kTotal) {
          ids.push_back(free.front());
          free.pop_front();
        }
      }
      if (ids.empty()) {
        std::this_thread::yield();
        continue;
      }
      sent += static_cast<int>(ids.size());
      runner.Send(ids, std::vector<float>(ids.size(), 0.5F));
    }
  });
  std::vector<int> received(kEnvs);
  for (int total = 0; total < kTotal;) {
    const auto refusal = RefusalOf({Code::kNothingPending}, [&] {
      const auto ready = runner.Receive(1, 3, std::nullopt, GiveUpAfter(kPatience));
      ASSERT_FALSE(ready.interrupted);
      total += static_cast<int>(ready.ids.size());
      std::lock_guard lock(mutex);
      for (const int32_t id : ready.ids) {
        ++received[static_cast<size_t>(id)];
        free.push_back(id);
      }
    });
    ASSERT_FALSE(HasFailure());
    if (refusal) std::this_thread::yield();
  }
  sender.join();
  EXPECT_EQ(std::accumulate(received.begin(), received.end(), 0), kTotal);
}

// two receivers share the results; whichever leaves first, the other is not left without a worker
TEST_P(Async, TwoReceivers) {
  Started runner(MakeOptions(8, GetParam()));
  for (int round = 0; round < 40; ++round) {
    runner.SendAll(round % 4 == 0 ? Nap(1) : kBusyWork);
    std::atomic<int> total{0};
    const auto receive = [&] {
      Results out(8);
      while (total.load() < 8) {
        RefusalOf({Code::kNothingPending}, [&] {
          auto ready = runner.env.Receive({1, 1, std::nullopt}, GiveUpAfter(kPatience));
          ASSERT_FALSE(ready.interrupted) << "a receiver hangs";
          runner.env.Gather(ready, out.Views());
          total.fetch_add(static_cast<int>(ready.ids.size()));
        });
        if (HasFailure()) return;
      }
    };
    std::thread other(receive);
    receive();
    other.join();
    if (HasFatalFailure()) return;
  }
}

// a receiver that came while another call held worker 0 takes over when that call ends
TEST(AsyncAlone, ASecondReceiverTakesOver) {
  Started runner(MakeOptions(4, 1));
  runner.SendAll(Nap(20));
  const auto receive = [&](int count) {
    Results out(4);
    auto ready = runner.env.Receive({count, count, std::nullopt}, GiveUpAfter(kPatience));
    EXPECT_FALSE(ready.interrupted) << "nobody works for the receiver";
    runner.env.Gather(ready, out.Views());
  };
  std::thread first([&] { receive(1); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  receive(2);
  first.join();
}

// one thread steps everything while another sends: a request is served between two steps or
// refused, never beside one
TEST_P(Async, SendBesideStep) {
  constexpr int kEnvs = 6;
  Started runner(MakeOptions(kEnvs, GetParam()));
  std::atomic<bool> stop{false};
  std::thread stepper([&] {
    Results out(kEnvs);
    const std::vector<float> actions(kEnvs, 0.5F);
    while (!stop.load()) {
      const auto refusal = RefusalOf({Code::kBusy}, [&] {
        runner.env.Step({actions.data(), DType::kFloat32, sizeof(float)}, out.Views(), Never);
      });
      if (refusal) std::this_thread::yield();
    }
  });
  int served = 0;
  for (int i = 0; i < 300; ++i) {
    if (RefusalOf({Code::kBusy}, [&] { runner.Send({i % kEnvs}, {0.5F}); })) continue;
    served += static_cast<int>(runner.Receive().ids.size());
  }
  stop.store(true);
  stepper.join();
  EXPECT_GT(served, 0);
}

// Send and Close from different threads, at every moment of each other's life
TEST_P(Async, SendBesideClose) {
  for (int i = 0; i < 100; ++i) {
    Started runner(MakeOptions(6, GetParam()));
    std::thread sender([&] {
      RefusalOf({Code::kClosed}, [&] {
        while (true) {
          runner.SendAll(0.5F);
          runner.Receive();
        }
      });
    });
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(10 * i));
    runner.env.Close();
    sender.join();
  }
}

}  // namespace
}  // namespace pyfastenv
