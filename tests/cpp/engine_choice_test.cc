// The faster of two ways is taken, soon, and measuring costs next to nothing.
#include "core/engine_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace pyfastenv {
namespace {

using Turn = EngineTurns::Turn;
constexpr int kGroup = 8;

// A worker whose group steps take given times.
class Worker {
 public:
  explicit Worker(std::shared_ptr<EngineChoice> choice, double noise = 0)
      : turns_(std::move(choice)), noise_(noise) {}

  /// One group step, in which lanes take `lanes` and mj_step `mujoco` [ns]; of the environments
  /// `missed` are left to mj_step.
  Turn Step(double lanes, double mujoco, int missed = 0) {
    const Turn turn = turns_.Next();
    ++count_[static_cast<size_t>(turn)];
    const double left_over = mujoco * missed / kGroup;
    if (turn != Turn::kMujoco) {
      spent_ += lanes;
      turns_.CountLanes(kGroup, missed, turns_.timed() ? Noisy(lanes) : 0);
    }
    if (turn == Turn::kLanes) {
      spent_ += left_over;
    } else {
      spent_ += mujoco;
      turns_.CountMujoco(kGroup, Noisy(mujoco));
    }
    return turn;
  }
  void Run(int steps, double lanes, double mujoco, int missed = 0) {
    for (int i = 0; i < steps; ++i) Step(lanes, mujoco, missed);
  }

  double spent() const { return spent_; }
  void Forget() { *this = Worker(turns_.choice(), noise_); }
  int64_t count(Turn turn) const { return count_[static_cast<size_t>(turn)]; }

 private:
  int64_t Noisy(double ns) {
    return static_cast<int64_t>(ns *
                                std::exp(std::normal_distribution<double>(0, noise_)(random_)));
  }

  EngineTurns turns_;
  double noise_;
  std::mt19937_64 random_{1};
  double spent_ = 0;
  int64_t count_[3] = {};
};

std::shared_ptr<EngineChoice> Choice(bool measures = true) {
  return std::make_shared<EngineChoice>(measures);
}

TEST(EngineChoice, LanesThatAreFasterStayAndTrialsCostLittle) {
  for (const double gain : {1.0, 1.2, 2.0, 8.0, 45.0}) {
    const auto choice = Choice();
    Worker worker(choice);
    worker.Run(100'000, 1000, 1000 * gain);
    EXPECT_TRUE(choice->lanes());
    EXPECT_EQ(worker.count(Turn::kMujoco), 0);
    worker.Forget();
    worker.Run(300'000, 1000, 1000 * gain);
    EXPECT_GT(worker.count(Turn::kBoth), 0);
    EXPECT_LT(worker.spent(), 1.005 * 300'000 * 1000) << gain;
    EXPECT_EQ(choice->reason(), "");
  }
}

TEST(EngineChoice, ResultsAreComparedAboutOnceInTenThousandAtTheLeast) {
  Worker worker(Choice());
  worker.Run(1'000'000, 1000, 40'000);
  EXPECT_GE(worker.count(Turn::kBoth), 95);
}

TEST(EngineChoice, LanesThatAreSlowerAreLeftSoon) {
  for (const double loss : {1.1, 1.5, 3.0, 20.0}) {
    const auto choice = Choice();
    Worker worker(choice);
    worker.Run(100, 1000 * loss, 1000);
    EXPECT_FALSE(choice->lanes()) << loss;
    worker.Run(50'000, 1000 * loss, 1000);  // the first trials come sooner
    worker.Forget();
    worker.Run(300'000, 1000 * loss, 1000);
    EXPECT_EQ(worker.count(Turn::kLanes), 0);
    EXPECT_LT(worker.spent(), 1.005 * 300'000 * 1000) << loss;
  }
}

TEST(EngineChoice, LanesThatAreClearlySlowerAreLeftAfterTwoTrials) {
  const auto trials_until_left = [](std::vector<double> lanes) {
    const auto choice = Choice();
    size_t trials = 0;
    for (; trials < lanes.size() && choice->lanes(); ++trials) choice->Note(lanes[trials], 1);
    return choice->lanes() ? 0 : trials;
  };
  EXPECT_EQ(trials_until_left({1.2, 1.2, 1.2}), 2);
  EXPECT_EQ(trials_until_left({1.2, 1.1, 1.2}), 3) << "not clearly";
  EXPECT_EQ(trials_until_left({1.2, .9, .9}), 0) << "noise";
}

TEST(EngineChoice, LanesThatBecomeSlowAreNoticedWhileTheyAreMuchFasterByTheLastTrial) {
  const auto choice = Choice();
  Worker worker(choice);
  worker.Run(100'000, 1000, 8000);  // in the air
  int steps = 0;
  for (; choice->lanes() && steps < 100'000; ++steps) worker.Step(12'000, 9000);  // on the ground
  EXPECT_LT(steps, 2000);
}

TEST(EngineChoice, AGroupThatHasShrunkPaysAsLongAsItsLanesDo) {
  const auto choice = Choice();
  EXPECT_TRUE(choice->PaysWith(1, kGroup)) << "nothing is known";
  Worker(choice).Run(1000, 1000, 2000);
  EXPECT_TRUE(choice->PaysWith(5, kGroup));
  EXPECT_FALSE(choice->PaysWith(3, kGroup));
  EXPECT_TRUE(Choice(/*measures=*/false)->PaysWith(1, kGroup));
}

TEST(EngineChoice, FollowsWhatChanges) {
  const auto choice = Choice();
  Worker worker(choice);
  worker.Run(20'000, 1000, 2000);
  worker.Run(20'000, 3000, 2000);  // all have fallen
  EXPECT_FALSE(choice->lanes());
  worker.Run(20'000, 1000, 2000);
  EXPECT_TRUE(choice->lanes());
}

TEST(EngineChoice, WhatLanesLeaveToMujocoCountsAsTheirs) {
  const auto choice = Choice();
  Worker worker(choice);
  worker.Run(20'000, 100, 1000, 0);
  worker.Forget();
  worker.Run(20'000, 100, 1000, kGroup);
  EXPECT_FALSE(choice->lanes());
  EXPECT_LT(worker.count(Turn::kLanes), 1000) << "the next trial did not come nearer";
}

TEST(EngineChoice, LanesThatLeaveMuchAndAreStillFasterAreNotTriedAllTheTime) {
  Worker worker(Choice());
  worker.Run(100'000, 20, 1000, kGroup - 1);
  worker.Forget();
  worker.Run(300'000, 20, 1000, kGroup - 1);
  EXPECT_LT(worker.spent(), 1.005 * 300'000 * (20 + 875));
}

TEST(EngineChoice, AsFastAsEachOtherCostsLittleInNoise) {
  Worker worker(Choice(), 0.2);
  worker.Run(500'000, 1000, 1000);
  EXPECT_LT(worker.spent(), 1.01 * 500'000 * 1000);
}

TEST(EngineChoice, ForcedLanesStayLanes) {
  const auto choice = Choice(false);
  Worker worker(choice);
  worker.Run(100'000, 3000, 1000);
  EXPECT_TRUE(choice->lanes());
  EXPECT_EQ(worker.count(Turn::kMujoco), 0);
  EXPECT_GT(worker.count(Turn::kBoth), 0);
}

TEST(EngineChoice, ATrialThatNobodyEndsIsFollowedByAnother) {
  const auto choice = Choice();
  EngineTurns left(choice);
  EXPECT_EQ(left.Next(), Turn::kBoth);  // and that worker never comes again
  Worker worker(choice);
  worker.Run(2 * EngineChoice::kUnreported, 1000, 2000);
  EXPECT_GT(worker.count(Turn::kBoth), 0);
}

TEST(EngineChoice, SkipsOnlyWhatIsLeft) {
  const auto choice = Choice();
  EXPECT_FALSE(choice->Skip(1)) << "the first trial is due";
  choice->Note(2000, 1000);
  EXPECT_TRUE(choice->Skip(EngineChoice::kSoon));
  EXPECT_FALSE(choice->Skip(1));
}

TEST(EngineChoice, IsSharedByWorkers) {
  const auto choice = Choice();
  std::vector<std::thread> threads;
  std::atomic<int64_t> both{0}, lanes{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Worker worker(choice);
      worker.Run(50'000, 2000, 1000);
      both += worker.count(Turn::kBoth);
      lanes += worker.count(Turn::kLanes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(choice->lanes());
  EXPECT_LT(both.load(), 4000);  // 1 in 130 where the ways are about as fast
}

}  // namespace
}  // namespace pyfastenv
