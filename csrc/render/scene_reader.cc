#include "render/scene_reader.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/errors.h"

namespace pyfastenv::render {

namespace {

constexpr float kOpaque = 0.995F;        // MuJoCo's, from which on a geom is opaque
constexpr float kFromBehind = 0.3F;      // planes are more transparent from behind
constexpr float kNoLightAmbient = 0.3F;  // of scenes without lights
constexpr float kDimmestGlow =
    1.0F / 2048;  // of a highlight's brightest, an eighth of a colour's step
constexpr float kDegrees = 3.14159265F / 180;
constexpr float kMaxExponent = 128;  // OpenGL's

Float3 At(const float* v) { return {v[0], v[1], v[2]}; }

/// The nearest whole exponent that OpenGL has; 0 of NaN.
int ExponentOf(float v) {
  return v > 0 ? static_cast<int>(std::lround(std::min(v, kMaxExponent))) : 0;
}

bool IsFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

void CheckFinite(std::span<const float> values, const std::string& what) {
  if (IsFinite(values)) return;
  throw BadValue("scene: expected finite numbers, got NaN or infinity in ", what);
}

bool IsPlaneFromBehind(const mjvGeom& g, Float3 head) {
  return g.type == mjGEOM_PLANE && Dot(head - At(g.pos), Float3{g.mat[2], g.mat[5], g.mat[8]}) < 0;
}

// Whether a geom is the model's mesh or height field; like MuJoCo's, one without is not seen.
bool IsOfModel(const mjvGeom& g) {
  return g.type == mjGEOM_HFIELD || g.type == mjGEOM_MESH || g.type == mjGEOM_SDF;
}

bool IsDrawn(const mjvGeom& g) {
  switch (g.type) {
    case mjGEOM_PLANE:
    case mjGEOM_SPHERE:
    case mjGEOM_CAPSULE:
    case mjGEOM_ELLIPSOID:
    case mjGEOM_CYLINDER:
    case mjGEOM_BOX:
    case mjGEOM_LINE:
      return true;
    default:
      return IsOfModel(g) && g.dataid >= 0;
  }
}

Form FormOf(int type) {
  switch (type) {
    case mjGEOM_PLANE:
      return Form::kPlane;
    case mjGEOM_SPHERE:
      return Form::kSphere;
    case mjGEOM_CAPSULE:
    case mjGEOM_LINE:
      return Form::kCapsule;
    case mjGEOM_ELLIPSOID:
      return Form::kEllipsoid;
    case mjGEOM_CYLINDER:
      return Form::kCylinder;
    case mjGEOM_BOX:
      return Form::kBox;
    default:
      return Form::kMesh;
  }
}

/// A finite plane's cells, at whose corners MuJoCo computes light.
PlaneGrid GridOf(const mjvGeom& g) {
  PlaneGrid grid;
  for (int k = 0; k < 2; ++k) {
    const float size = g.size[k];
    if (size <= 0) return {};
    const float half = std::max(g.size[2], size / (mjMAXPLANEGRID - 2));
    int cells = static_cast<int>(std::floor(size / std::max(half, 1e-15F)));
    cells -= cells % 2;
    grid.edge[k] = size - static_cast<float>(cells) * half;
    grid.width[k] = 2 * half;
    grid.cells[k] = cells + 2;
  }
  return grid;
}

/// A geom's own mapping of a texture, which MuJoCo has in some versions, or its material's.
template <class Geom>
Material MaterialOf(const Geom& g, const Look& look) {
  if constexpr (requires { g.texrepeat; }) {
    if (g.texid >= 0) return {g.texid, g.texuniform != 0, {g.texrepeat[0], g.texrepeat[1]}};
  }
  return look.material(g.matid);
}

void SetTexture(const mjvGeom& g, const Sources& sources, Shape& s) {
  if (g.matid < 0) return;
  const Material m = MaterialOf(g, sources.look);
  s.texture = sources.assets.texture(m.texture);
  if (s.texture == nullptr) return;
  const bool is_mesh = s.form == Form::kMesh;
  const auto uniform = [&](int k) { return m.is_uniform && g.size[k] > 0 ? g.size[k] : 1.0F; };
  if (s.texture->is_cube) {
    s.mapping = Mapping::kCube;
    s.cube = m.is_uniform ? At(g.size) : Float3{1, 1, 1};
    if (s.form == Form::kPlane) {
      s.cube.z = s.cube.x;  // in metres, like a mesh's; along its normal there is nothing
    } else if (!is_mesh) {
      s.cube = {s.cube.x / s.size.x, s.cube.y / s.size.y, s.cube.z / s.size.z};
    }
    return;
  }
  const auto repeat = [&](int k) { return (m.repeat[k] > 0 ? m.repeat[k] : 1.0F) * uniform(k); };
  if (s.form == Form::kPlane) {
    s.mapping = Mapping::kPlanar;
    const bool ends = g.size[0] > 0 && g.size[1] > 0;
    for (int k = 0; k < 2; ++k) {
      float* to = k == 0 ? s.u : s.v;
      const float sign = k == 0 ? 1 : -1, times = repeat(k);
      to[0] = g.size[k] > 0 ? sign * times / (2 * g.size[k]) : sign * times * 0.5F;
      to[1] = (g.size[k] > 0 ? times * 0.5F : 0) - (ends ? 0 : 0.5F);
    }
    return;
  }
  if (g.texcoord != 0 || s.form == Form::kBox) {
    s.mapping = is_mesh ? Mapping::kCoordinates : Mapping::kBox;
    s.u[0] = repeat(0), s.v[0] = repeat(1);
    return;
  }
  s.mapping = Mapping::kPlanar;  // along x and y
  const auto scale = [&](int k) {
    return 0.5F * m.repeat[k] * uniform(k) / (g.size[k] > 0 ? g.size[k] : 1);
  };
  s.u[0] = scale(0), s.u[1] = -0.5F, s.v[0] = -scale(1), s.v[1] = -0.5F;
}

bool IsReflective(const mjvGeom& g, const Shape& s) {
  return g.type == mjGEOM_PLANE && !s.is_transparent && g.reflectance > 0;
}

enum class Lamp { kSpot, kDirectional, kOther };  // in mjtLightType's order

/// Older versions of MuJoCo have two kinds and a flag.
template <class Source>
Lamp LampOf(const Source& l) {
  if constexpr (requires { l.directional; }) {
    return l.directional != 0 ? Lamp::kDirectional : Lamp::kSpot;
  } else {
    return static_cast<Lamp>(std::min<int>(l.type, static_cast<int>(Lamp::kOther)));
  }
}

Light LightOf(const mjvLight& from, Float3 head, bool shadows, const Look& look) {
  Light l;
  l.is_directional = LampOf(from) == Lamp::kDirectional;
  l.casts_shadow = shadows && from.castshadow != 0;
  l.position = At(from.pos) - head, l.direction = Unit(At(from.dir));
  l.ambient = At(from.ambient), l.diffuse = At(from.diffuse), l.specular = At(from.specular);
  if (!l.is_directional) {
    l.attenuation = At(from.attenuation);
    l.exponent = ExponentOf(from.exponent);
    if (from.cutoff <= 90) l.cut = std::cos(from.cutoff * kDegrees);
  }
  Float3 up = Cross(l.direction, Float3{-1, 0, 0});
  if (Dot(up, up) <= 0.01F) up = Cross(l.direction, Float3{0, 1, 0});
  l.right = Unit(Cross(l.direction, Unit(up)));
  l.up = Cross(l.right, l.direction);
  const float angle = std::min(2 * from.cutoff * look.shadow_scale, 160.0F);
  l.clip = l.is_directional ? look.shadow_clip : std::tan(angle * 0.5F * kDegrees);
  return l;
}

}  // namespace

std::string Refusal(const mjvScene& scene) {
  if (scene.stereo != mjSTEREO_NONE || scene.enabletransform != 0 || scene.framewidth != 0) {
    return "scenes in stereo, with a model transformation or a frame are not drawn";
  }
  if (scene.flags[mjRND_WIREFRAME] != 0 || scene.flags[mjRND_ADDITIVE] != 0) {
    return "wireframes and additive transparency are not drawn";
  }
  constexpr int kDepth = mjRND_HAZE + 1;  // older versions of MuJoCo: segments again
  if (scene.flags[mjRND_SEGMENT] != 0 || scene.flags[kDepth] != 0) {
    return "flags of scenes for segments and depth are not drawn; renderers have methods for them";
  }
  for (int i = 0; i < scene.ngeom; ++i) {
    const mjvGeom& g = scene.geoms[i];
    if (g.type == mjGEOM_SKIN || g.type == mjGEOM_FLEX) return "skins and flexes are not drawn";
    if (!IsDrawn(g) && g.type != mjGEOM_NONE && !IsOfModel(g)) {
      return "arrows, labels, triangles and boxes of lines are not drawn";
    }
    if (g.label[0] != '\0') return "labels are not drawn";
  }
  return {};
}

const Frame& SceneReader::Read(const mjvScene& scene, const Sources& sources, const Format& format,
                               Content content) {
  if (const std::string refusal = Refusal(scene); !refusal.empty()) {
    throw BadValue("scene: ", refusal);
  }
  frame_ = Frame();
  frame_.width = format.width, frame_.height = format.height;
  frame_.samples = content == Content::kColors ? format.samples : 1;
  frame_.culls_faces = scene.flags[mjRND_CULL_FACE] != 0;
  ReadView(scene, format);
  ReadGeoms(scene, sources, content);
  if (content == Content::kSegments) return frame_;
  ReadLights(scene, sources.look);
  ReadEffects(scene, sources);
  SortTransparent();
  return frame_;
}

void SceneReader::ReadView(const mjvScene& scene, const Format& format) {
  const mjvGLCamera &a = scene.camera[0], &b = scene.camera[1];
  CheckFinite({a.pos, 3}, "the camera's position");
  CheckFinite({a.forward, 3}, "the camera's direction");
  CheckFinite({a.up, 3}, "the camera's direction");
  head_ = (At(a.pos) + At(b.pos)) * 0.5F;
  View& v = frame_.view;
  v.eye.position = {0, 0, 0};
  v.eye.z = Unit(At(a.forward) + At(b.forward));
  v.eye.x = Unit(Cross(v.eye.z, At(a.up) + At(b.up)));
  v.eye.y = Cross(v.eye.x, v.eye.z);
  v.is_orthographic = a.orthographic != 0;
  v.near = a.frustum_near, v.far = a.frustum_far;
  const float aspect = static_cast<float>(format.width) / static_cast<float>(format.height);
  const float high = a.frustum_top - a.frustum_bottom;
  const float center = (a.frustum_center + b.frustum_center) * 0.5F;
  const float half = a.frustum_width > 0 ? a.frustum_width : 0.5F * aspect * high;
  const float scale = v.is_orthographic ? 1 : 1 / v.near;
  if (!(v.near > 0) || !(high > 0) || !(half > 0)) {
    throw BadValue("scene: the camera sees nothing; was it updated?");
  }
  v.left = (center - half) * scale, v.top = a.frustum_top * scale;
  v.pixel_x = 2 * half * scale / static_cast<float>(format.width);
  v.pixel_y = -high * scale / static_cast<float>(format.height);
}

void SceneReader::ReadGeoms(const mjvScene& scene, const Sources& sources, Content content) {
  shapes_.clear(), distances_.clear(), height_fields_.clear();
  const bool has_reflections = scene.flags[mjRND_REFLECTION] != 0;
  for (int i = 0; i < scene.ngeom; ++i) {
    const mjvGeom& g = scene.geoms[i];
    const bool is_segment = content == Content::kSegments;
    if (!IsDrawn(g) || (is_segment ? g.segid < 0 : g.rgba[3] <= 0)) continue;
    const std::string name = "geom " + std::to_string(i) + " of the scene";
    CheckFinite({g.pos, 3}, "the position of " + name);
    CheckFinite({g.mat, 9}, "the orientation of " + name);
    Shape s;
    s.form = FormOf(g.type), s.geom = i;
    s.pose = {At(g.pos) - head_,
              {g.mat[0], g.mat[3], g.mat[6]},
              {g.mat[1], g.mat[4], g.mat[7]},
              {g.mat[2], g.mat[5], g.mat[8]}};
    s.size = At(g.size);
    if (s.form == Form::kPlane) s.size.z = 0;
    if (g.type == mjGEOM_LINE) {  // as wide as so many pixels are at its middle
      const float half = g.size[2] * 0.5F;
      s.pose.position = s.pose.position + s.pose.z * half;
      const float away = frame_.view.is_orthographic ? 1 : Dot(s.pose.position, frame_.view.eye.z);
      const float radius = 0.5F * g.size[0] * frame_.view.pixel_x * std::max(away, 0.0F);
      s.size = {radius, radius, half};
      s.is_unlit = true;
    }
    if (s.form == Form::kMesh) {
      const bool is_ground = g.type == mjGEOM_HFIELD;
      if (is_ground) height_fields_.push_back(sources.heights.at(g.dataid));
      const Mesh* mesh = is_ground ? height_fields_.back().get() : sources.assets.mesh(g.dataid);
      if (mesh == nullptr) {
        throw BadValue("scene: ", name, ": expected one of the model's ",
                       is_ground ? "height fields" : "meshes", ", got number ", g.dataid);
      }
      s.levels = mesh->levels().data(), s.num_levels = static_cast<int>(mesh->levels().size());
      s.low = mesh->low(), s.high = mesh->high(), s.is_open = mesh->is_open();
    }
    const bool behind = IsPlaneFromBehind(g, head_);
    s.color = At(g.rgba), s.alpha = behind ? g.rgba[3] * kFromBehind : g.rgba[3];
    s.is_transparent = !is_segment && (g.rgba[3] < kOpaque || behind);
    s.specular = g.specular, s.emission = g.emission;
    s.shininess = ExponentOf(128 * g.shininess);
    if (s.shininess > 0) s.glow_from = std::pow(kDimmestGlow, 2.0F / s.shininess);
    s.casts_shadow = g.type != mjGEOM_LINE && g.category != mjCAT_DECOR;
    if (!is_segment) SetTexture(g, sources, s);
    if (s.form == Form::kPlane) s.grid = GridOf(g);
    if (frame_.reflector < 0 && has_reflections && IsReflective(g, s)) {
      frame_.reflector = static_cast<int>(shapes_.size()), frame_.reflectance = g.reflectance;
    }
    const float reach = g.modelrbound > 0 ? g.modelrbound : Length(s.size);
    distances_.push_back(s.form == Form::kPlane ? kFar : Length(s.pose.position) - reach);
    shapes_.push_back(s);
  }
  frame_.shapes = shapes_.data(), frame_.num_shapes = static_cast<int>(shapes_.size());
}

void SceneReader::ReadLights(const mjvScene& scene, const Look& look) {
  lights_.clear();
  const bool has_shadows = scene.flags[mjRND_SHADOW] != 0 && look.has_shadows;
  for (int i = 0; i < std::min(scene.nlight, kMaxLights); ++i) {
    const mjvLight& l = scene.lights[i];
    if (LampOf(l) == Lamp::kOther) continue;  // MuJoCo's leaves them out, too
    const std::string name = "light " + std::to_string(i) + " of the scene";
    CheckFinite({l.pos, 3}, "the position of " + name);
    CheckFinite({l.dir, 3}, "the direction of " + name);
    lights_.push_back(LightOf(l, head_, has_shadows, look));
  }
  frame_.lights = lights_.data(), frame_.num_lights = static_cast<int>(lights_.size());
  frame_.ambient = lights_.empty() ? kNoLightAmbient : 0;
}

void SceneReader::ReadEffects(const mjvScene& scene, const Sources& sources) {
  const Look& look = sources.look;
  if (scene.flags[mjRND_FOG] != 0) {
    const bool is_edge = look.fog_end == look.fog_start;  // OpenGL then takes a metre
    const float start = is_edge ? look.fog_end - 1 : look.fog_start;
    frame_.fog = {true, look.fog_color, start, look.fog_end};
  }
  if (scene.flags[mjRND_SKYBOX] == 0 || sources.assets.sky() == nullptr) return;
  frame_.sky = sources.assets.sky();
  if (scene.flags[mjRND_HAZE] == 0) return;
  for (int i = 0; i < frame_.num_shapes; ++i) {
    const Shape& s = shapes_[i];
    if (s.form != Form::kPlane || s.size.x != 0 || s.size.y != 0) continue;
    const float height = -Dot(s.pose.position, s.pose.z);
    if (height > 0) {
      Haze& h = frame_.haze;
      h.plane = i, h.color = look.haze_color;
      if (frame_.fog.on) {  // as the sky, which it is as far away as
        const Fog& fog = frame_.fog;
        const float share = (fog.end - kSkyRadius * frame_.view.far) / (fog.end - fog.start);
        h.color = fog.color + (h.color - fog.color) * std::clamp(share, 0.0F, 1.0F);
      }
      h.scale = kSkyRadius * frame_.view.far / height, h.radius = look.haze;
      const float a = std::atan2(1.0F, look.haze), b = 135 * kDegrees - a;
      h.bend = std::sqrt(0.5F) * look.haze * std::sin(a) / std::sin(b);
    }
    return;  // only the first infinite plane has haze
  }
}

void SceneReader::SortTransparent() {
  transparent_.clear();
  for (int i = 0; i < frame_.num_shapes; ++i) {
    if (shapes_[i].is_transparent) transparent_.push_back(i);
  }
  std::stable_sort(transparent_.begin(), transparent_.end(),
                   [&](int a, int b) { return distances_[a] < distances_[b]; });
  frame_.transparent = transparent_.data();
  frame_.num_transparent = static_cast<int>(transparent_.size());
}

}  // namespace pyfastenv::render
