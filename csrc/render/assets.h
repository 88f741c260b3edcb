// What all pictures of a model share: textures, meshes, height fields and the model's visual
// options.
//
// Any number of threads may draw with one Assets: textures are made by the constructor, meshes and
// height fields when the first picture needs them, by one thread while others wait. It reads the
// model then, so the model must outlive it and keep its meshes.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <mutex>
#include <vector>

#include "render/mesh.h"
#include "render/texture.h"

namespace pyfastenv::render {

/// mjModel.vis and .stat, as far as pictures need them.
struct Look {
  float shadow_clip = 0, shadow_scale = 0, haze = 0, far = 0;
  Float3 haze_color{}, fog_color{};
  float fog_start = 0, fog_end = 0;
};

/// How a geom's material maps a texture.
struct Material {
  int texture = -1;
  bool is_uniform = false;
  float repeat[2] = {0, 0};
};

class Assets {
 public:
  explicit Assets(const mjModel& model);

  /// Null: there is none that can be drawn.
  const Texture* texture(int id) const;
  const Texture* sky() const { return sky_; }
  /// A geom's mesh, by mjvGeom.dataid: 2 * mesh, or 2 * mesh + 1 for the convex hull. Null: the
  /// model has none of that number; so for height fields.
  const Mesh* mesh(int dataid) const;
  std::shared_ptr<const Mesh> height_field(int id) const;
  /// Has the next picture read all heights from the model anew.
  void ForgetHeights();
  /// `id` is -1 for none.
  Material material(int id) const;
  const Look& look() const { return look_; }

 private:
  struct Lazy {
    std::once_flag once;
    std::unique_ptr<const Mesh> mesh;
  };

  const mjModel& model_;
  Look look_;
  std::vector<std::unique_ptr<const TextureLevels>> textures_;
  std::vector<Material> materials_;
  const Texture* sky_ = nullptr;
  mutable std::vector<Lazy> meshes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Mesh>> height_fields_;  // with the mutex
};

}  // namespace pyfastenv::render
