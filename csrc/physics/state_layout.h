// Where the components of a model's state stand in a row of mjSTATE_INTEGRATION.
#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace pyfastenv::physics {

class StateLayout {
 public:
  /// Numbers of a row that belong together.
  struct Part {
    unsigned bits;  // of mjtState
    size_t begin, size;
  };

  StateLayout() = default;
  explicit StateLayout(const mjModel& model) {
    for (unsigned bit = 1; bit < (1u << mjNSTATE); bit <<= 1) {
      if ((bit & mjSTATE_INTEGRATION) == 0) continue;
      const int size = mj_stateSize(&model, static_cast<int>(bit));
      if (size == 0) continue;
      parts_[count_++] = {bit, size_, static_cast<size_t>(size)};
      size_ += static_cast<size_t>(size);
      bits_ |= bit;
    }
  }

  /// Numbers of a row.
  size_t size() const { return size_; }
  /// Components that the model has, bits of mjtState.
  unsigned bits() const { return bits_; }
  /// They, in the order in which they stand.
  std::span<const Part> parts() const { return {parts_.data(), count_}; }
  /// That of one bit; of size 0 if the model has none.
  Part part(unsigned bit) const {
    for (const Part& part : parts()) {
      if (part.bits == bit) return part;
    }
    return {bit, 0, 0};
  }
  /// Of these alone; neighbours are one part.
  void Select(unsigned bits, std::vector<Part>& selected) const {
    selected.clear();
    for (const Part& part : parts()) {
      if ((part.bits & bits) == 0) continue;
      if (selected.empty() || selected.back().begin + selected.back().size != part.begin) {
        selected.push_back(part);
      } else {
        selected.back().bits |= part.bits;
        selected.back().size += part.size;
      }
    }
  }

 private:
  std::array<Part, mjNSTATE> parts_{};
  size_t count_ = 0, size_ = 0;
  unsigned bits_ = 0;
};

}  // namespace pyfastenv::physics
