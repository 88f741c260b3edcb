// Which environments to run first: those whose latest steps took longest.
//
// With few environments, what a barrier step takes is decided by who finishes last. A step's cost
// follows from the contacts, which last for many steps, so the latest cost foretells the next.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace pyfastenv {

class CostOrder {
 public:
  explicit CostOrder(int num_envs)
      : cost_(static_cast<size_t>(num_envs)), order_(static_cast<size_t>(num_envs)) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int32_t>(i);
  }

  /// Notes the cost of an environment's last step; called by the worker that ran it.
  void Note(int32_t id, std::chrono::steady_clock::duration duration) {
    float& cost = cost_[static_cast<size_t>(id)];
    cost = 0.5F * cost + 0.5F * std::chrono::duration<float>(duration).count();
  }
  void Forget(int32_t id) { cost_[static_cast<size_t>(id)] = 0.0F; }

  /// Sorts positions begin … end - 1 of the order, the most expensive first.
  void Sort(std::pair<int, int> share) {
    std::sort(order_.begin() + share.first, order_.begin() + share.second,
              [this](int32_t a, int32_t b) {
                return cost_[static_cast<size_t>(a)] > cost_[static_cast<size_t>(b)];
              });
  }
  /// The id at a position.
  int32_t At(int32_t position) const { return order_[static_cast<size_t>(position)]; }

 private:
  std::vector<float> cost_;     // seconds, a running mean
  std::vector<int32_t> order_;  // each share's own ids
};

}  // namespace pyfastenv
