// A bounded first-in-first-out ring of environment ids; it knows no payload.
//
// Every environment has at most one entry, so a ring of num_envs entries never overflows. Not
// synchronised: the owner locks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pyfastenv {

class IdQueue {
 public:
  explicit IdQueue(size_t capacity) : ids_(capacity) {}

  size_t size() const { return size_; }

  void Push(int32_t id) {
    size_t slot = first_ + size_;
    if (slot >= ids_.size()) slot -= ids_.size();
    ids_[slot] = id;
    ++size_;
  }

  /// Before all others.
  void PushFront(int32_t id) {
    first_ = first_ == 0 ? ids_.size() - 1 : first_ - 1;
    ids_[first_] = id;
    ++size_;
  }

  /// Moves up to `max` ids to `out`, oldest first, and returns how many.
  size_t Pop(size_t max, int32_t* out) {
    const size_t count = std::min(max, size_);
    for (size_t i = 0; i < count; ++i) {
      out[i] = ids_[first_];
      if (++first_ == ids_.size()) first_ = 0;
    }
    size_ -= count;
    return count;
  }

  void Clear() { first_ = size_ = 0; }

 private:
  std::vector<int32_t> ids_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace pyfastenv
