// Positions 0 … count - 1 cut into groups of neighbours that a worker runs together.
//
// They are first dealt to `parts` workers in equal parts, and each part is cut into groups of
// `size`, the last of them smaller (now and then empty: all parts have equally many groups, so that
// WorkShares deals each worker its own). So with few environments every worker has something, and
// with many all groups but one per worker are whole. Immutable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace pyfastenv {

inline int CeilDiv(int a, int b) { return (a + b - 1) / b; }

class Grouping {
 public:
  Grouping() = default;
  Grouping(int count, int parts, int size)
      : count_(count),
        parts_(parts),
        size_(size),
        groups_per_part_(CeilDiv(CeilDiv(count, parts), size)) {}

  int num_parts() const { return parts_; }
  /// A part's first position and the one behind its last.
  std::pair<int, int> Part(int part) const { return {BeginOf(part), BeginOf(part + 1)}; }
  int num_groups() const { return parts_ * groups_per_part_; }
  /// The most positions in a group.
  int size() const { return size_; }
  /// A group's first position and the one behind its last.
  std::pair<int, int> Positions(int group) const {
    const int part = group / groups_per_part_;
    const int end = BeginOf(part + 1);
    const int begin = std::min(BeginOf(part) + group % groups_per_part_ * size_, end);
    return {begin, std::min(begin + size_, end)};
  }

 private:
  int BeginOf(int part) const { return static_cast<int>(int64_t{count_} * part / parts_); }

  int count_ = 0;
  int parts_ = 1;
  int size_ = 1;
  int groups_per_part_ = 0;
};

}  // namespace pyfastenv
