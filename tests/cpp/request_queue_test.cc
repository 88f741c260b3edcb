// RequestQueue by itself: requests, results and receivers, with nobody who runs environments.
#include "core/request_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "counting_env.h"

namespace pyfastenv::testing {
namespace {

constexpr int kEnvs = 6;
using Ids = std::vector<int32_t>;

class Queue : public ::testing::Test {
 protected:
  void Push(const Ids& ids, const std::vector<float>& actions) {
    RequestQueue::Requests requests;
    requests.ids = ids;
    requests.actions = {actions.data(), DType::kFloat32, sizeof(float)};
    queue.Push(requests);
  }
  void Push(const Ids& ids) { Push(ids, std::vector<float>(ids.size(), 0.5F)); }

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

TEST_F(Queue, EachRequestHasItsOwnPayload) {
  Push({3, 1}, {0.25F, -0.5F});
  EXPECT_EQ(queue.JobOf(3).action[0].value(), 0.25);
  EXPECT_EQ(queue.JobOf(1).action[0].value(), -0.5);
  EXPECT_EQ(queue.JobOf(1).kind, Job::Kind::kStep);
  const std::vector<std::vector<uint32_t>> seeds = {{7}};
  const std::vector<double> options = {2.5};
  const Ids zero = {0};
  RequestQueue::Requests reset;
  reset.kind = Job::Kind::kReset;
  reset.ids = zero;
  reset.seeds = seeds;
  reset.reset_options = options;
  queue.Push(reset);
  const Job job = queue.JobOf(0);
  EXPECT_EQ(job.kind, Job::Kind::kReset);
  EXPECT_EQ(*job.seed, seeds[0]);
  EXPECT_EQ(job.reset_options[0], 2.5);
}

TEST_F(Queue, EnvironmentsAreUnderWayUntilTheirResultsAreReleased) {
  EXPECT_TRUE(queue.idle());
  Push({2, 4});
  EXPECT_EQ(queue.UnderWay({}), (Ids{2, 4}));
  Take(1, 2, 2);
  queue.PutResults(Ids{4, 2});
  auto received = Receive({});
  EXPECT_EQ(received.ids, (Ids{4, 2}));  // in order of arrival
  EXPECT_EQ(queue.UnderWay(Ids{1, 2}), (Ids{2}));
  queue.Release(received);
  EXPECT_TRUE(queue.idle());
  ExpectUsageError(Code::kNothingPending, "nothing has been sent", [&] { Receive({}); });
}

TEST_F(Queue, ResultsThatAreNotReleasedWaitForTheNextReceiver) {
  Push({0, 1, 2});
  Take(1, 3, 3);
  queue.PutResults(Ids{2, 0, 1});
  {
    const auto lost = Receive({2, 2, std::nullopt});
    EXPECT_EQ(lost.ids, (Ids{2, 0}));
  }
  auto received = Receive({});
  EXPECT_EQ(received.ids, (Ids{2, 0, 1}));
  queue.Release(received);
}

TEST_F(Queue, FailuresComeApartFromResults) {
  Push({0, 1});
  Take(1, 2, 2);
  try {
    throw std::runtime_error("broken");
  } catch (...) {
    queue.failures().AddCurrentException(1);
  }
  queue.outputs().kinds[1] = kFailed;
  queue.PutResults(Ids{1, 0});
  auto received = Receive({});
  EXPECT_EQ(received.ids, (Ids{0}));
  ASSERT_EQ(received.failures.size(), 1U);
  EXPECT_EQ(received.failures[0].env_id, 1);
  EXPECT_EQ(received.failures[0].message, "broken");
  queue.Release(received);
  EXPECT_TRUE(queue.idle());
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

TEST_F(Queue, AnInterruptedReceiverLeavesEverything) {
  Push({0});
  Take(1, 1, 1);
  const auto help = [](bool) { return false; };
  EXPECT_TRUE(queue.Receive({}, gate, help, [] { return true; }).interrupted);
  queue.PutResults(Ids{0});
  auto received = Receive({});
  EXPECT_EQ(received.ids, (Ids{0}));
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
