// Pictures of MuJoCo scenes on one core, without OpenGL.
//
// A Renderer belongs to one thread at a time: each worker has its own, and all share the model's
// Assets. A picture depends on the scene, the format and the instruction set, not on the thread or
// on pictures before: these only leave what they have in common with it.
#pragma once

#include <cstdint>
#include <memory>

#include "render/arena.h"
#include "render/kernels.h"
#include "render/scene_reader.h"

namespace pyfastenv::render {

/// The sky's colours of the last picture, which the next one has too if its camera looks in the
/// same direction.
class SkyMemory {
 public:
  /// Where a frame's are, to be read and filled. Valid until the next call.
  SkyColors Of(const Frame& frame);

 private:
  Arena arena_;
  SkyColors colors_;
  const Texture* sky_ = nullptr;
  View view_;
};

class Renderer {
 public:
  static constexpr int kMaxSide = 8192;  // pixels

  /// Throws UsageError (kValue): a side is not 1 to kMaxSide pixels or samples are not 1, 4 or 16.
  Renderer(std::shared_ptr<const Assets> assets, const Format& format,
           const Kernels& kernels = BestKernels());

  /// Writes a picture (height, width, 3) of a scene that mjv_updateScene has filled.
  /// These throw UsageError as SceneReader::Read does, before anything is written.
  void Draw(const mjvScene& scene, uint8_t* rgb);
  /// Writes the distances along the camera's view [m], (height, width); where nothing is, the far
  /// end of what it sees. Transparent geoms count as opaque, as in Segment.
  void DrawDepth(const mjvScene& scene, float* depth);
  /// Writes which object each pixel shows, (height, width, 2): mjvGeom's objid and objtype, or -1.
  void Segment(const mjvScene& scene, int32_t* objects);
  /// Height fields other than the assets', which the caller keeps.
  void UseHeights(const HeightFields& heights) { heights_ = &heights; }

  const Format& format() const { return format_; }

 private:
  const Frame& Read(const mjvScene& scene, Content content);

  std::shared_ptr<const Assets> assets_;
  const HeightFields* heights_;
  const Look look_;
  Format format_;
  const Kernels& kernels_;
  SceneReader reader_;
  Arena arena_;
  SkyMemory sky_;
};

}  // namespace pyfastenv::render
