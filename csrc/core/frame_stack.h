// Pictures as observations: the latest frames of a camera, side by side along the channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pyfastenv {

/// `stack` frames of (height, width, channels) bytes, the oldest first: together (height, width,
/// stack * channels), or (stack * channels, height, width) with the channels first. All zero: none.
struct FrameStack {
  int height = 0, width = 0, channels = 0;
  int stack = 0;
  bool channels_first = false;
  int every = 1;  // steps of an episode from one frame to the next

  bool empty() const { return stack == 0; }
  size_t frame_bytes() const { return pixels() * static_cast<size_t>(channels); }
  size_t bytes() const { return frame_bytes() * static_cast<size_t>(stack); }

  /// Whether there is a frame after so many steps of an episode; a reset is after none.
  bool IsDue(int elapsed) const { return !empty() && elapsed % every == 0; }

  /// Drops the oldest frame and adds this one; `frames` has bytes().
  void Push(const uint8_t* frame, uint8_t* frames) const {
    const size_t moved = channels_first ? frame_bytes() : static_cast<size_t>(channels);
    std::memmove(frames, frames + moved, bytes() - moved);
    Put(frame, stack - 1, frames);
  }
  /// Makes this one all of the frames.
  void Fill(const uint8_t* frame, uint8_t* frames) const {
    for (int i = 0; i < stack; ++i) Put(frame, i, frames);
  }

 private:
  size_t pixels() const { return static_cast<size_t>(height) * static_cast<size_t>(width); }

  void Put(const uint8_t* frame, int index, uint8_t* frames) const {
    const auto step = static_cast<size_t>(channels);
    if (!channels_first) {
      frames += static_cast<size_t>(index) * step;
      for (size_t p = 0; p < pixels(); ++p) {
        std::memcpy(frames + p * step * static_cast<size_t>(stack), frame + p * step, step);
      }
      return;
    }
    frames += static_cast<size_t>(index) * frame_bytes();
    for (size_t c = 0; c < step; ++c, frames += pixels()) {
      for (size_t p = 0; p < pixels(); ++p) frames[p] = frame[p * step + c];
    }
  }
};

}  // namespace pyfastenv
