#include "render/assets.h"

namespace pyfastenv::render {

Look::Look(const mjModel& m) {
  const auto extent = static_cast<float>(m.stat.extent);
  const auto color = [](const float* c) { return Float3{c[0], c[1], c[2]}; };
  has_shadows = m.vis.quality.shadowsize > 0;
  shadow_clip = extent * m.vis.map.shadowclip;
  shadow_scale = m.vis.map.shadowscale;
  haze = m.vis.map.haze;
  haze_color = color(m.vis.rgba.haze), fog_color = color(m.vis.rgba.fog);
  fog_start = extent * m.vis.map.fogstart, fog_end = extent * m.vis.map.fogend;
  for (int i = 0; i < m.nmat; ++i) {
    Material material;
    material.texture = m.mat_texid[i * mjNTEXROLE + mjTEXROLE_RGB];
    material.is_uniform = m.mat_texuniform[i] != 0;
    for (int k = 0; k < 2; ++k) material.repeat[k] = m.mat_texrepeat[2 * i + k];
    materials.push_back(material);
  }
}

Material Look::material(int id) const {
  return id < 0 || id >= static_cast<int>(materials.size()) ? Material() : materials[id];
}

HeightFields::HeightFields(const mjModel& m) : model_(m), fields_(static_cast<size_t>(m.nhfield)) {}

std::shared_ptr<const Mesh> HeightFields::at(int id) const {
  if (id < 0 || id >= static_cast<int>(fields_.size())) return nullptr;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Mesh>& mesh = fields_[id];
  if (mesh == nullptr) mesh = std::make_shared<const Mesh>(ReadHeightField(model_, id));
  return mesh;
}

void HeightFields::Forget() {
  const std::lock_guard lock(mutex_);
  for (auto& mesh : fields_) mesh = nullptr;
}

Assets::Assets(const mjModel& m)
    : model_(m), meshes_(static_cast<size_t>(2 * m.nmesh)), heights_(m) {
  for (int i = 0; i < m.ntex; ++i) {
    textures_.push_back(std::make_unique<const TextureLevels>(m, i));
    const bool is_sky = m.tex_type[i] == mjTEXTURE_SKYBOX && !textures_.back()->empty();
    if (is_sky && sky_ == nullptr) sky_ = &textures_.back()->view();
  }
}

const Texture* Assets::texture(int id) const {
  if (id < 0 || id >= static_cast<int>(textures_.size()) || textures_[id]->empty()) return nullptr;
  return &textures_[id]->view();
}

const Mesh* Assets::mesh(int dataid) const {
  if (dataid < 0 || dataid >= static_cast<int>(meshes_.size())) return nullptr;
  Lazy& lazy = meshes_[dataid];
  std::call_once(lazy.once, [&] {
    lazy.mesh = std::make_unique<const Mesh>(ReadMesh(model_, dataid / 2, dataid % 2 != 0));
  });
  return lazy.mesh.get();
}

}  // namespace pyfastenv::render
