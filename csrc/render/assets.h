// What all pictures of a model share: textures, meshes and height fields.
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

/// How a geom's material maps a texture.
struct Material {
  int texture = -1;
  bool is_uniform = false;
  float repeat[2] = {0, 0};
};

/// A model's materials, mjModel.vis and .stat, as far as pictures need them: as they are when a
/// Renderer is made.
struct Look {
  explicit Look(const mjModel& model);

  /// `id` is -1 for none.
  Material material(int id) const;

  std::vector<Material> materials;
  bool has_shadows = false;
  float shadow_clip = 0, shadow_scale = 0, haze = 0;
  Float3 haze_color{}, fog_color{};
  float fog_start = 0, fog_end = 0;
};

/// The height fields of a model, each made when the first picture needs it. Any number of threads
/// may read one. Reads the model then, so the model must outlive it.
class HeightFields {
 public:
  explicit HeightFields(const mjModel& model);

  /// Null: the model has none of that number.
  std::shared_ptr<const Mesh> at(int id) const;
  /// Has the next picture read all from the model anew.
  void Forget();

 private:
  const mjModel& model_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Mesh>> fields_;  // with the mutex
};

class Assets {
 public:
  explicit Assets(const mjModel& model);

  /// Null: there is none that can be drawn.
  const Texture* texture(int id) const;
  const Texture* sky() const { return sky_; }
  /// A geom's mesh, by mjvGeom.dataid: 2 * mesh, or 2 * mesh + 1 for the convex hull. Null: the
  /// model has none of that number.
  const Mesh* mesh(int dataid) const;
  HeightFields& heights() { return heights_; }
  const HeightFields& heights() const { return heights_; }
  const mjModel& model() const { return model_; }

 private:
  struct Lazy {
    std::once_flag once;
    std::unique_ptr<const Mesh> mesh;
  };

  const mjModel& model_;
  std::vector<std::unique_ptr<const TextureLevels>> textures_;
  const Texture* sky_ = nullptr;
  mutable std::vector<Lazy> meshes_;
  HeightFields heights_;
};

}  // namespace pyfastenv::render
