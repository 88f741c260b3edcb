// Which environments to run in one group: those with as many constraint rows.
//
// A group's physics costs what its busiest environment's does. Contacts last for many steps, so the
// rows at the end of a step foretell those of the next.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace pyfastenv {

class GroupOrder {
 public:
  explicit GroupOrder(int num_envs)
      : rows_(static_cast<size_t>(num_envs)), order_(static_cast<size_t>(num_envs)) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int32_t>(i);
  }

  /// Notes the constraint rows of an environment's last step; called by the worker that ran it.
  void Note(int32_t id, int num_rows) {
    rows_[static_cast<size_t>(id)] = static_cast<uint8_t>(std::clamp(num_rows, 0, kMost));
  }

  /// Orders the ids begin … end - 1, which stand at these positions, by their rows: each window by
  /// itself, so that neighbours in memory stay near each other in time.
  void Sort(int begin, int end) {
    for (; begin < end; begin += kWindow) SortWindow(begin, std::min(begin + kWindow, end));
  }

  /// The id at a position.
  int32_t At(int32_t position) const { return order_[static_cast<size_t>(position)]; }

 private:
  static constexpr int kMost = 62;     // more are alike
  static constexpr int kWindow = 512;  // whole groups

  void SortWindow(int begin, int end) {
    std::array<int32_t, kMost + 2> place{};  // where the next id with so many rows goes
    for (int id = begin; id < end; ++id) ++place[rows_[static_cast<size_t>(id)] + size_t{1}];
    place[0] = begin;
    for (size_t rows = 1; rows < place.size(); ++rows) place[rows] += place[rows - 1];
    for (int id = begin; id < end; ++id) {
      order_[static_cast<size_t>(place[rows_[static_cast<size_t>(id)]]++)] = id;
    }
  }

  std::vector<uint8_t> rows_;
  std::vector<int32_t> order_;  // each part's own ids
};

}  // namespace pyfastenv
