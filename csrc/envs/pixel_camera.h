// PixelCamera: draws environments of a MuJoCo model from their rows, for the workers that step
// them.
//
// It has a Workspace of its own, so that drawing leaves the physics' mjData alone, and a
// render::Renderer; textures and meshes belong to all cameras of a vector environment. Poses are
// those of the row's positions (mj_kinematics), whatever stepped them. One thread at a time.
#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/frame_source.h"
#include "core/frame_stack.h"
#include "mujoco/model_fields.h"
#include "mujoco/workspace.h"
#include "render/renderer.h"

namespace pyfastenv {

/// A camera of the model, by name or number, or a free one. The free one looks at the middle of the
/// geoms' default poses from as far as the model is wide, where it does not say otherwise.
struct CameraChoice {
  std::optional<std::string> name;
  std::optional<int> number;
  std::optional<int> tracked_body;  // the free one moves with it
  std::optional<std::array<double, 3>> lookat;
  std::optional<double> distance, azimuth, elevation;
};

/// What frames show. Their channels: red, green, blue; distance, if `depth`; objects, if
/// `segmentation`.
struct PixelOptions {
  FrameStack frames;
  double depth = 0.0;         // distance along the view that is 255, and all beyond [m]; 0: none
  bool segmentation = false;  // a geom's number plus 1; 0: no geom
  int samples = 0;            // per pixel: 1, 4 or 16; 0: next to the model's
  CameraChoice camera;
  /// Of own tasks: fields with values in the row, narrow ones last.
  std::vector<FieldPlace> own_fields;

  int channels() const { return 3 + (depth > 0.0 ? 1 : 0) + (segmentation ? 1 : 0); }
};

class PixelCamera final : public FrameSource {
 public:
  /// Makes one camera per call; safe from one thread at a time. Throws UsageError (kValue), at
  /// once: no such camera, a size out of range, or what the renderer does not draw.
  static MakeFrameSource Maker(SharedModel model, const PixelOptions& options);

  PixelCamera(SharedModel model, PixelOptions options,
              std::shared_ptr<const render::Assets> assets);
  ~PixelCamera() override;

  void Prepare(const RowLayout& layout) override;
  void Adopt(const RowLayout& layout) noexcept override;
  /// Throws UsageError (kValue) for poses that are not finite, MujocoError.
  void Draw(const double* row, uint8_t* frame) override;

 private:
  void UpdateScene();
  /// Makes room for more geoms.
  void MakeScene(int max_geoms);
  void PointFields(const double* row);

  const PixelOptions options_;
  Workspace workspace_;
  std::vector<ModelField> own_fields_;  // of options_.own_fields, without narrow ones
  int fields_offset_ = 0;               // likewise, of the fields that callers set
  render::HeightFields heights_;        // of the workspace's model
  bool own_heights_ = false;            // whether every environment has its own
  std::vector<int> ray_stages_;         // of all sensors; empty: none is a range finder
  render::Renderer renderer_;
  mjvScene scene_{};
  mjvOption visible_{};
  mjvCamera camera_{};
  // of one frame
  std::vector<uint8_t> colors_;
  std::vector<float> depth_;
  std::vector<int32_t> objects_;
};

}  // namespace pyfastenv
