// VectorEnv's asynchronous calls on several threads. What each gives: tests/python/test_async.py.
#include <gtest/gtest.h>

#include <deque>
#include <mutex>

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

}  // namespace
}  // namespace pyfastenv
