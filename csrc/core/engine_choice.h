// Which of two ways with the same results does the physics: lanes, or mj_step. Measured in use.
//
// Now and then a worker does a few group steps both ways, one after the other: a *trial*. Who does
// so compares the results bit for bit, and reports what either way took. The choice is the faster
// way by the median of the latest trials. How often there is a trial follows from what it costs:
// all of them together but the first few take 1/256 of the time. So a way that is much slower is
// tried seldom (one group step in 10,000 where lanes are 40 times as fast), and one that is nearly
// as fast often, which finds out soon when it has become the faster one.
//
// No result depends on any of this. EngineChoice is what all workers of a pool (or all calls for a
// model) share; EngineTurns is one worker's.
//
// Threads: EngineChoice any; EngineTurns one at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace pyfastenv {

class EngineChoice {
 public:
  /// `measures`: takes the faster way. Otherwise lanes, whatever they cost; results are still
  /// compared.
  explicit EngineChoice(bool measures) : measures_(measures) {}
  /// Lanes without any trial, so that whoever looks for differing bits sees all of them.
  static std::shared_ptr<EngineChoice> Untried();

  bool lanes() const { return lanes_.load(std::memory_order_relaxed); }
  /// Whether lanes are faster for a group of which `count` environments are left, if they are for
  /// `whole` groups as the latest trials say: a group costs the same however many it has.
  bool PaysWith(int count, int whole) const;
  /// Why it is mj_step that steps; empty while it is lanes.
  std::string reason() const;

  /// Takes `steps` group steps of those that are left until the next trial. False, and takes none,
  /// if there are not so many.
  bool Skip(int64_t steps);
  /// Takes `steps` group steps, whether so many are left or not.
  void Spend(int64_t steps) { left_.fetch_sub(steps, std::memory_order_relaxed); }
  /// Whether the caller is to do the trial that is due; nobody else is told so.
  bool Claim();
  /// Brings the next trial nearer by so many group steps, if something has changed: a group was
  /// left to mj_step, and the latest trials say that lanes are much faster.
  void Hurry(int64_t steps) {
    if (much_faster_.load(std::memory_order_relaxed)) {
      left_.fetch_sub(steps, std::memory_order_relaxed);
    }
  }
  /// Notes the times that a trial has measured, per environment step [ns].
  void Note(double lanes, double mujoco);
  /// What lanes take between trials, per environment step [ns]. If that has grown so much that
  /// mj_step may be faster by now (robots that have fallen), the next trial comes soon, though not
  /// before a quarter of the way to it.
  void Watch(double lanes);

  // in group steps
  static constexpr int kTrial = 4;              // of a trial; the first only warms the caches
  static constexpr int64_t kSoon = 16;          // until a trial that confirms another
  static constexpr int64_t kBatch = 16;         // that a worker takes at a time
  static constexpr int64_t kUnreported = 4096;  // until the next trial, if one is never reported
  // Until the next trial: so many times what the last one has cost. The first ones come sooner
  // where neither way is twice as fast: robots that have just been reset will soon move otherwise.
  static constexpr int64_t kShare = 256;
  static constexpr int64_t kEarlyShare = 20;
  static constexpr int64_t kEarlyTrials = 8;

 private:
  static constexpr double kMargin = 1.03;  // by which the other way must be faster
  static constexpr double kGrown = 1.5;    // times what lanes took in a trial
  static constexpr int64_t kRemembered = 5;
  static constexpr int kEnough = 3;          // trials before the choice changes, unless
  static constexpr double kClear = 1 / 0.9;  // times as long is what lanes take in both of two
  static constexpr int kMostHasty = 4;       // trials in a row that may come soon

  double Median() const;  // with mutex_

  const bool measures_;
  // relaxed: nothing is handed over with them
  std::atomic<bool> lanes_{true};
  std::atomic<bool> much_faster_{false};      // lanes, beyond what a group in vain allows
  std::atomic<int64_t> left_{0};              // the first trial is due at once
  std::atomic<int64_t> soonest_{0};           // of left_, from which Watch may bring a trial
  std::atomic<double> alarm_{1e300};          // the time [ns] at which it does
  mutable std::mutex mutex_;                  // guards what follows
  std::array<double, kRemembered> ratios_{};  // lanes' time by mj_step's, of the latest trials
  int64_t noted_ = 0;
  int hasty_ = 0;
  double debt_ = 0;  // extra time of trials not yet paid back, in group steps
};

class EngineTurns {
 public:
  enum class Turn : uint8_t { kLanes, kMujoco, kBoth };

  EngineTurns() = default;
  explicit EngineTurns(std::shared_ptr<EngineChoice> choice) : choice_(std::move(choice)) {}

  const std::shared_ptr<EngineChoice>& choice() const { return choice_; }

  /// How the next group step is to be done. Of kBoth, both counts below follow.
  Turn Next();

  /// Whether this turn's time is asked for: of kBoth, and of kLanes now and then.
  bool timed() const { return timed_; }
  /// Lanes have taken `ns` for this turn's environment steps, of which they left `missed` to
  /// mj_step.
  void CountLanes(int steps, int missed, int64_t ns);
  /// mj_step has taken `ns` for some environment steps of this turn.
  void CountMujoco(int steps, int64_t ns);

 private:
  static constexpr uint64_t kWatched = 128;  // of so many turns, the time of one is asked for
  static constexpr int64_t kVain = 64;  // a group step that lanes left to mj_step counts as so many

  struct Counts {
    int64_t steps = 0, ns = 0;
  };
  void Finish();

  std::shared_ptr<EngineChoice> choice_;
  int64_t credit_ = 0;  // group steps until choice_ is asked again
  int trial_ = 0;       // group steps of the present trial that are left
  bool tried_ = false;  // a trial has counts that have not been noted
  uint64_t turns_ = 0;
  bool timed_ = false;
  bool both_ = false;  // the present turn is kBoth, and not the first of its trial
  Counts lanes_, mujoco_;
  int64_t missed_ = 0;
};

}  // namespace pyfastenv
