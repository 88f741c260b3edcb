// From MuJoCo's abstract scene, which mjv_updateScene fills, to what the kernels draw.
//
// mjvScene is MuJoCo's own interface between a model's state and its renderer: geoms, sites and
// tendons with poses and materials, lights, the camera; groups and flags of mjvOption have been
// applied. Nothing here knows a state, an environment or a thread.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <string>
#include <vector>

#include "render/assets.h"

namespace pyfastenv::render {

/// A picture's size [pixels] and its samples per pixel: 1, 4 or 16.
struct Format {
  int width = 0, height = 0, samples = 4;
};

/// What a scene's geoms are made of.
struct Sources {
  const Assets& assets;
  const HeightFields& heights;
  const Look& look;
};

enum class Content { kColors, kSegments };  // kSegments: every geom that has a segid, opaque

/// Why a scene is not drawn, in one sentence; empty if it is.
std::string Refusal(const mjvScene& scene);

/// Holds the arrays of the last Frame; not synchronised.
class SceneReader {
 public:
  /// The frame is valid until the next Read. Throws UsageError (kValue): the scene is refused, or
  /// a geom, a light or the camera has a number that is not finite.
  const Frame& Read(const mjvScene& scene, const Sources& sources, const Format& format,
                    Content content);

 private:
  void ReadView(const mjvScene& scene, const Format& format);
  void ReadGeoms(const mjvScene& scene, const Sources& sources, Content content);
  void ReadLights(const mjvScene& scene, const Look& look);
  void ReadEffects(const mjvScene& scene, const Sources& sources);
  void SortTransparent();

  Frame frame_;
  Float3 head_{};  // the camera's position; everything else is relative to it
  std::vector<Shape> shapes_;
  std::vector<Light> lights_;
  std::vector<float> distances_;  // per shape, of transparent ones' nearest points
  std::vector<int> transparent_;
  std::vector<std::shared_ptr<const Mesh>> height_fields_;  // that shapes_ point into
};

}  // namespace pyfastenv::render
