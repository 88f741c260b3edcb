#include "core/engine_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace pyfastenv {

std::shared_ptr<EngineChoice> EngineChoice::Untried() {
  auto choice = std::make_shared<EngineChoice>(false);
  choice->left_.store(std::numeric_limits<int64_t>::max(), std::memory_order_relaxed);
  return choice;
}

std::string EngineChoice::reason() const {
  if (lanes()) return {};
  const std::lock_guard lock(mutex_);
  char text[80];
  std::snprintf(text, sizeof(text), "mj_step is faster here, %.2g times as fast as lanes",
                Median());
  return text;
}

bool EngineChoice::PaysWith(int count, int whole) const {
  if (!measures_) return true;
  const std::lock_guard lock(mutex_);
  return noted_ == 0 || Median() * whole <= kMargin * count;
}

bool EngineChoice::Skip(int64_t steps) {
  int64_t left = left_.load(std::memory_order_relaxed);
  while (left >= steps) {
    if (left_.compare_exchange_weak(left, left - steps, std::memory_order_relaxed)) return true;
  }
  return false;
}

bool EngineChoice::Claim() {
  int64_t left = left_.load(std::memory_order_relaxed);
  while (left < kBatch) {
    if (left_.compare_exchange_weak(left, kUnreported, std::memory_order_relaxed)) return true;
  }
  return false;
}

double EngineChoice::Median() const {
  if (noted_ == 0) return 1;
  const auto count = static_cast<size_t>(std::min<int64_t>(noted_, kRemembered));
  std::array<double, kRemembered> sorted{};
  for (size_t i = 0; i < count; ++i) {
    size_t at = i;
    for (; at > 0 && sorted[at - 1] > ratios_[i]; --at) sorted[at] = sorted[at - 1];
    sorted[at] = ratios_[i];
  }
  return sorted[count / 2];
}

void EngineChoice::Note(double lanes, double mujoco) {
  if (!(lanes > 0) || !(mujoco > 0)) return;
  const std::lock_guard lock(mutex_);
  const double ratio = lanes / mujoco;
  ratios_[static_cast<size_t>(noted_++) % ratios_.size()] = ratio;
  const double median = Median();
  const bool in_lanes = lanes_.load(std::memory_order_relaxed);
  much_faster_.store(measures_ && in_lanes && median < 0.75, std::memory_order_relaxed);
  // what the other way has cost, beside the one that would have been gone anyway
  debt_ += kTrial * (in_lanes ? 1 / ratio : ratio);
  const auto speaks_against = [&](double r) { return in_lanes ? r > kMargin : r * kMargin < 1; };
  const bool clear = noted_ == 2 && std::min(ratios_[0], ratios_[1]) > kClear;
  if (measures_ && (clear || (noted_ >= kEnough && speaks_against(median)))) {
    lanes_.store(!in_lanes, std::memory_order_relaxed);
    hasty_ = 0;
  } else if (measures_ && speaks_against(ratio) && hasty_ < kMostHasty) {
    ++hasty_;
    left_.store(kSoon, std::memory_order_relaxed);
    return;
  }
  hasty_ = 0;
  const bool early = noted_ <= kEarlyTrials && median > 0.5 && median < 2;
  const auto share = static_cast<double>(early ? kEarlyShare : kShare);
  const double until = std::ceil(share * debt_);
  const double wait = noted_ <= kEarlyTrials ? kEarlyShare * debt_ : until / 4;
  left_.store(static_cast<int64_t>(until), std::memory_order_relaxed);
  soonest_.store(static_cast<int64_t>(until - wait), std::memory_order_relaxed);
  alarm_.store(std::max(kGrown * lanes, mujoco / 2), std::memory_order_relaxed);
  debt_ = 0;
}

void EngineChoice::Watch(double lanes) {
  if (!measures_ || lanes < alarm_.load(std::memory_order_relaxed)) return;
  if (left_.load(std::memory_order_relaxed) > soonest_.load(std::memory_order_relaxed)) return;
  left_.store(0, std::memory_order_relaxed);
}

EngineTurns::Turn EngineTurns::Next() {
  both_ = false;
  if (trial_ == 0 && tried_) Finish();
  if (trial_ == 0 && credit_ <= 0) {
    if (!choice_->Skip(EngineChoice::kBatch) && choice_->Claim()) {
      trial_ = EngineChoice::kTrial;
      tried_ = true;
      lanes_ = mujoco_ = {};
      missed_ = 0;
    } else {
      credit_ = EngineChoice::kBatch;
    }
  }
  if (trial_ > 0) {
    both_ = trial_ < EngineChoice::kTrial;
    timed_ = true;
    --trial_;
    return Turn::kBoth;
  }
  --credit_;
  timed_ = choice_->lanes() && ++turns_ % kWatched == 0;
  return choice_->lanes() ? Turn::kLanes : Turn::kMujoco;
}

void EngineTurns::CountLanes(int steps, int missed, int64_t ns) {
  if (both_) {
    lanes_.steps += steps;
    lanes_.ns += ns;
    missed_ += missed;
    return;
  }
  if (ns > 0 && steps > missed) choice_->Watch(static_cast<double>(ns) / (steps - missed));
  if (4 * missed > 3 * steps) {
    choice_->Hurry(kVain);
  }
}

void EngineTurns::CountMujoco(int steps, int64_t ns) {
  if (!both_) return;
  mujoco_.steps += steps;
  mujoco_.ns += ns;
}

void EngineTurns::Finish() {
  tried_ = false;
  if (lanes_.steps == 0 || mujoco_.steps == 0) return;
  const double mujoco = static_cast<double>(mujoco_.ns) / static_cast<double>(mujoco_.steps);
  const auto tried = static_cast<double>(lanes_.steps);
  const double left_over = static_cast<double>(missed_) / tried * mujoco;
  choice_->Note(static_cast<double>(lanes_.ns) / tried + left_over, mujoco);
}

}  // namespace pyfastenv
