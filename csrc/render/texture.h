// A model's textures, with the smaller copies that OpenGL samples from afar.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <vector>

#include "render/frame.h"

namespace pyfastenv::render {

/// Immutable; not copyable, since `view` points into it.
class TextureLevels {
 public:
  /// Copies a texture of a model, which has 3 or 4 channels (others have no levels). Colours that
  /// are stored in sRGB become linear, as OpenGL reads them.
  TextureLevels(const mjModel& model, int texture);
  TextureLevels(const TextureLevels&) = delete;
  TextureLevels& operator=(const TextureLevels&) = delete;

  const Texture& view() const { return view_; }
  bool empty() const { return levels_.empty(); }

 private:
  std::vector<std::vector<uint32_t>> texels_;
  std::vector<TextureLevel> levels_;
  Texture view_;
};

}  // namespace pyfastenv::render
