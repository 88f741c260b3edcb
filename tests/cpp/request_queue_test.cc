// RequestQueue by itself: requests, results and receivers, with nobody who runs environments. What
// they carry, and what becomes of failures and of results that nobody gathers: async_test.cc,
// failure_test.cc, memory_test.cc.
#include "core/request_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "counting_env.h"

namespace pyfastenv::testing {
namespace {

constexpr int kEnvs = 6;
using Ids = std::vector<int32_t>;

class Queue : public ::testing::Test {
 protected:
  void Push(const Ids& ids) {
    const std::vector<float> actions(ids.size(), 0.5F);
    RequestQueue::Requests requests;
    requests.ids = ids;
    requests.actions = {actions.data(), DType::kFloat32, sizeof(float)};
    queue.Push(requests);
  }

  Ids Take(int parts, int least, int max) {
    Ids ids(kEnvs, -1);
    ids.resize(static_cast<size_t>(queue.TakeRequests(parts, least, max, ids.data())));
    return ids;
  }

  RequestQueue::Received Receive(const RequestQueue::Wanted& wanted) {
    return queue.Receive(wanted, gate, [](bool) { return false; }, Never);
  }

  const CountingEnv env;
  CallGate gate;
  RequestQueue queue{kEnvs, env.spec()};
};

TEST_F(Queue, RequestsAreTakenOldestFirstAndPartByPart) {
  Push({4, 1});
  Push({0, 5, 3, 2});
  EXPECT_EQ(queue.num_requests(), 6);
  EXPECT_EQ(Take(3, 1, 6), (Ids{4, 1}));  // a third of six
  EXPECT_EQ(Take(4, 1, 6), (Ids{0}));
  EXPECT_EQ(Take(4, 2, 6), (Ids{5, 3}));  // at least two
  EXPECT_EQ(Take(1, 1, 1), (Ids{2}));
  EXPECT_EQ(Take(1, 1, 6), Ids());
}

TEST_F(Queue, AReceiverSleepsUntilAWorkerHasTheRest) {
  Push({0, 1});
  Take(1, 2, 2);
  queue.PutResults(Ids{0});
  std::thread worker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    queue.PutResults(Ids{1});
  });
  auto received = Receive({});
  worker.join();
  EXPECT_EQ(received.ids, (Ids{0, 1}));
  queue.Release(received);
}

TEST_F(Queue, ClosingForgetsRequestsAndWakesReceivers) {
  Push({0, 1});
  const Ids taken = Take(1, 1, 1);
  std::atomic<bool> refused{false};
  std::thread receiver([&] {
    ExpectUsageError(Code::kClosed, "closed", [&] { Receive({}); });
    refused = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.Close([&] { queue.Clear(); }, [] {});
  receiver.join();
  EXPECT_TRUE(refused);
  EXPECT_EQ(queue.num_requests(), 0);
  EXPECT_FALSE(queue.PutBack(taken));  // a worker that comes late keeps nothing alive
}

}  // namespace
}  // namespace pyfastenv::testing
