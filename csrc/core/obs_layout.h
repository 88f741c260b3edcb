// How a pool keeps and returns an environment's observation: its numbers, pictures, or both.
#pragma once

#include <cstddef>

#include "core/frame_stack.h"
#include "npy/dtype.h"

namespace pyfastenv {

/// [numbers in `dtype` | pictures], in bytes. With both, pictures begin, and the whole ends, at a
/// multiple of 8: rows of it are views of aligned numbers.
struct ObsLayout {
  int size = 0;  // numbers that an environment observes
  DType dtype = DType::kFloat64;
  FrameStack frames = {};
  bool has_numbers = true;  // whether they are part of it

  size_t frames_offset() const {
    return has_numbers ? RoundUp(static_cast<size_t>(size) * ItemSize(dtype)) : 0;
  }
  size_t bytes() const {
    if (!has_numbers) return frames.bytes();
    if (frames.empty()) return static_cast<size_t>(size) * ItemSize(dtype);
    return RoundUp(frames_offset() + frames.bytes());
  }

 private:
  static size_t RoundUp(size_t bytes) { return (bytes + 7) / 8 * 8; }
};

}  // namespace pyfastenv
