// What the kernels draw: plain numbers and pointers, one picture's worth. SceneReader fills a Frame
// from an mjvScene, Renderer lends scratch memory (Arena), and a kernel writes pixels.
//
// All positions are relative to the camera's, so a robot a kilometre from the origin is as sharp as
// one at home.
#pragma once

#include <cstdint>

#include "render/vec3.h"

namespace pyfastenv::render {

constexpr int kLanes = 16;  // numbers that are computed together, on every processor
constexpr int kBlock = 4;   // side of a block of pixels, one pixel a lane
constexpr float kFar = 1e30F;
constexpr int kMaxSamples = 16;     // of antialiasing
constexpr int kMaxLights = 8;       // OpenGL's; MuJoCo's others are not seen
constexpr float kSkyRadius = 0.7F;  // of the farthest that is seen

struct TextureLevel {
  int width = 0, height = 0;
  // Red in the lowest byte; a cube's six faces one after another. A row has a texel more, the one
  // that is right of its last: a cube's last again, others' first. After the last row as many
  // follow as a kernel may read and not use.
  const uint32_t* texels = nullptr;
  int row() const { return width + 1; }
};

/// A texture and its smaller copies, each of half the size.
struct Texture {
  const TextureLevel* levels = nullptr;
  int num_levels = 0;
  bool is_cube = false;
};

/// Triangles in groups of kLanes: (groups, 9, kLanes) floats, x y z of the first corner, and so on.
struct Triangles {
  int num_groups = 0;
  const float* corners = nullptr;
  const float* normals = nullptr;
  const float* uvs = nullptr;  // (groups, 6, kLanes), or null
  float cell = 0;              // corners have been moved by up to this; 0: not at all
};

enum class Form { kPlane, kSphere, kEllipsoid, kCapsule, kCylinder, kBox, kMesh };

enum class Mapping {
  kNone,
  kCube,         // by the direction from the geom's middle
  kPlanar,       // u and v are linear in x and y
  kBox,          // each face of a box has the whole texture
  kCoordinates,  // a mesh's own
};

/// The light on a plane that MuJoCo computes at the corners of a few large cells.
struct PlaneGrid {
  int cells[2] = {0, 0};    // 0: light is computed at each pixel
  float edge[2] = {0, 0};   // width of the first and last cell
  float width[2] = {0, 0};  // of the others
};

struct Shape {
  Form form = Form::kSphere;
  int geom = 0;  // in the mjvScene
  Pose pose;
  Float3 size{};         // radii, half lengths; a plane that does not end has zeros
  Float3 low{}, high{};  // of a mesh
  Float3 color{};
  float alpha = 1, specular = 0, emission = 0;
  int shininess = 0;
  float glow_from = 0;  // square of the cosine from which a highlight is bright enough to be seen
  bool is_transparent = false, is_unlit = false, casts_shadow = false;
  bool is_open = false;  // a mesh with an edge that only one triangle has
  Mapping mapping = Mapping::kNone;
  const Texture* texture = nullptr;
  Float3 cube{};  // scales of a cube's coordinates
  float u[2] = {0, 0},
        v[2] = {0, 0};  // kPlanar: u[0] x + u[1], v[0] y + v[1]; else factors u[0], v[0]
  const Triangles* levels = nullptr;  // the finest first
  int num_levels = 0;
  PlaneGrid grid;
};

struct Light {
  bool is_directional = false, casts_shadow = false;
  Float3 position{}, direction{}, ambient{}, diffuse{}, specular{};
  Float3 attenuation{1, 0, 0};
  float cut = -1;  // cosine of a spot's half angle; -1: all around
  int exponent = 0;
  Float3 right{}, up{};  // of the square within which there are shadows
  float clip = 0;        // half of its side: in metres, or at distance 1 from a spot
};

/// Where rays begin: through (x, y) at depth 1 of a perspective eye, from (x, y) of an
/// orthographic.
struct View {
  Pose eye;  // x right, y up, z forward
  bool is_orthographic = false;
  bool is_mirrored = false;
  float left = 0, top = 0, pixel_x = 0, pixel_y = 0;  // pixel_y < 0
  float near = 0, far = 0;
  bool operator==(const View&) const = default;
};

/// MuJoCo's haze, a cone around an infinite plane's horizon.
struct Haze {
  int plane = -1;  // its shape
  Float3 color{};
  float scale = 0;  // 1 / the eye's height over the plane, in the sky's radius
  float radius = 0, bend = 0;
};

struct Fog {
  bool on = false;
  Float3 color{};
  float start = 0, end = 1;
};

/// The sky at the middles of pixels, kept from picture to picture: it stays while the camera does
/// not turn. Of each block three times kLanes floats.
struct SkyColors {
  float* colors = nullptr;      // null: not kept
  uint8_t* is_known = nullptr;  // of each block
};

struct Frame {
  int width = 0, height = 0, samples = 1;  // samples: 1, 4 or 16
  bool culls_faces = true;
  View view;
  Shape* shapes = nullptr;
  int num_shapes = 0;
  const int* transparent = nullptr;  // shapes, the nearest first
  int num_transparent = 0;
  Light* lights = nullptr;
  int num_lights = 0;
  float ambient = 0;  // where no light is
  const Texture* sky = nullptr;
  SkyColors sky_colors;
  Haze haze;
  Fog fog;
  int reflector = -1;  // the shape that mirrors the others
  float reflectance = 0;
};

}  // namespace pyfastenv::render
