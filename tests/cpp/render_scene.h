// Models and scenes made by hand, without MuJoCo's library: what the renderer reads of them.
#pragma once

#include <mujoco/mujoco.h>

#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "render/renderer.h"

namespace pyfastenv::render {

/// A model with meshes and 2D textures, which the test owns.
struct HandMadeModel {
  mjModel model{};
  std::vector<float> vertices, normals;
  std::vector<int> faces;
  int zero = 0, minus = -1, num_faces = 0;
  std::vector<mjtByte> texels;
  int side = 0, type = mjTEXTURE_2D, channels = 3, colorspace = 0;
  std::remove_pointer_t<decltype(mjModel::tex_adr)> texture_begin = 0;
  std::vector<int> material_texture = std::vector<int>(mjNTEXROLE, -1);
  std::remove_pointer_t<decltype(mjModel::mat_texuniform)> is_uniform = 0;  // by version
  float repeat[2] = {1, 1};

  HandMadeModel() {
    model.stat.extent = 1;
    model.vis.quality.shadowsize = 4096;
    model.vis.map.zfar = 50, model.vis.map.shadowclip = 5, model.vis.map.shadowscale = 0.6F;
  }

  /// A sphere of 2 * n * n quads.
  void AddSphereMesh(int n, float radius) {
    for (int i = 0; i <= n; ++i) {
      for (int j = 0; j <= 2 * n; ++j) {
        const double el = M_PI * i / n - M_PI / 2, az = M_PI * j / n;
        const double p[3] = {std::cos(el) * std::cos(az), std::cos(el) * std::sin(az),
                             std::sin(el)};
        for (const double v : p) {
          normals.push_back(static_cast<float>(v));
          vertices.push_back(static_cast<float>(radius * v));
        }
      }
    }
    const int row = 2 * n + 1;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < 2 * n; ++j) {
        const int a = i * row + j;
        for (const int v : {a, a + 1, a + row + 1, a, a + row + 1, a + row}) faces.push_back(v);
      }
    }
    num_faces = static_cast<int>(faces.size() / 3);
    model.nmesh = 1;
    model.mesh_vert = vertices.data(), model.mesh_normal = normals.data();
    model.mesh_face = faces.data(), model.mesh_facenormal = faces.data();
    model.mesh_vertadr = model.mesh_normaladr = model.mesh_faceadr = &zero;
    model.mesh_texcoordadr = model.mesh_graphadr = &minus;
    model.mesh_facenum = &num_faces;
  }

  /// A texture of n x n texels, material 0; `color(x, y)` gives red, green and blue.
  template <class F>
  void AddTexture(int n, const F& color) {
    for (int y = 0; y < n; ++y) {
      for (int x = 0; x < n; ++x) {
        for (const int c : color(x, y)) texels.push_back(static_cast<mjtByte>(c));
      }
    }
    side = n;
    model.ntex = 1, model.nmat = 1;
    model.tex_type = &type, model.tex_width = model.tex_height = &side;
    model.tex_nchannel = &channels, model.tex_colorspace = &colorspace;
    model.tex_adr = &texture_begin, model.tex_data = texels.data();
    material_texture[mjTEXROLE_RGB] = 0;
    model.mat_texid = material_texture.data(), model.mat_texuniform = &is_uniform;
    model.mat_texrepeat = repeat;
  }
};

/// A scene whose camera looks along +y from the origin, x to the right and z up, 90 degrees high.
struct HandMadeScene {
  mjvScene scene{};
  std::vector<mjvGeom> geoms;

  HandMadeScene() {
    for (mjvGLCamera& c : scene.camera) {
      c.forward[1] = 1, c.up[2] = 1;
      c.frustum_near = 0.01F, c.frustum_far = 50;
      c.frustum_top = 0.01F, c.frustum_bottom = -0.01F;
    }
    for (const int flag :
         {mjRND_SHADOW, mjRND_REFLECTION, mjRND_SKYBOX, mjRND_HAZE, mjRND_CULL_FACE}) {
      scene.flags[flag] = 1;
    }
  }

  mjvGeom& Add(int type, float x, float y, float z, float a, float b = 0, float c = 0) {
    mjvGeom g{};
    g.type = type, g.dataid = type == mjGEOM_MESH ? 0 : -1;
    g.objtype = mjOBJ_GEOM, g.objid = g.segid = static_cast<int>(geoms.size());
    g.matid = g.texid = -1, g.category = mjCAT_DYNAMIC;
    g.size[0] = a, g.size[1] = b > 0 ? b : a, g.size[2] = c > 0 ? c : a;
    if (type == mjGEOM_PLANE) g.size[1] = b, g.size[2] = c;
    g.pos[0] = x, g.pos[1] = y, g.pos[2] = z;
    g.mat[0] = g.mat[4] = g.mat[8] = 1;
    for (float& v : g.rgba) v = 1;
    geoms.push_back(g);
    scene.geoms = geoms.data();
    scene.ngeom = scene.maxgeom = static_cast<int>(geoms.size());
    return geoms.back();
  }

  /// A directional light of diffuse white.
  mjvLight& AddLight(float x, float y, float z, bool casts_shadow) {
    mjvLight& l = scene.lights[scene.nlight++];
    l.type = mjLIGHT_DIRECTIONAL;
    l.dir[0] = x, l.dir[1] = y, l.dir[2] = z;
    l.pos[0] = -3 * x, l.pos[1] = 3 - 3 * y, l.pos[2] = -3 * z;
    for (float& v : l.diffuse) v = 1;
    l.castshadow = casts_shadow ? 1 : 0;
    return l;
  }
};

using Bytes = std::vector<uint8_t>;

inline Bytes Draw(const HandMadeModel& m, const HandMadeScene& s, Format format,
                  const Kernels& kernels = BestKernels()) {
  Renderer renderer(std::make_shared<const Assets>(m.model), format, kernels);
  Bytes out(static_cast<size_t>(format.width) * format.height * 3);
  renderer.Draw(s.scene, out.data());
  return out;
}

inline int Red(const Bytes& picture, int width, int x, int y) {
  return picture[(static_cast<size_t>(y) * width + x) * 3];
}

}  // namespace pyfastenv::render
