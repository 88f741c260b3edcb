// What draws an environment's picture from its row: the core's view of a renderer.
//
// One object per worker, one thread at a time. A picture is a function of the row alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/row_layout.h"

namespace pyfastenv {

class FrameSource {
 public:
  virtual ~FrameSource() = default;

  /// From the next Draw on, rows are of this layout.
  virtual void Adopt(const RowLayout& layout) noexcept = 0;
  /// Gets ready for it, and may throw; the next Adopt is of the same layout.
  virtual void Prepare(const RowLayout& layout) = 0;

  /// Writes a frame, FrameStack's (height, width, channels). May throw; the next Draw repairs that.
  virtual void Draw(const double* row, uint8_t* frame) = 0;
};

using MakeFrameSource = std::function<std::unique_ptr<FrameSource>()>;

}  // namespace pyfastenv
