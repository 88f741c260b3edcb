// Pictures of scenes made by hand: distances, colours and shadows whose values are known; the same
// bits in any thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <thread>

#include "core/errors.h"
#include "render/renderer.h"
#include "render_scene.h"

namespace pyfastenv::render {
namespace {

constexpr int kSide = 65;  // odd: a pixel's middle is the picture's; no multiple of a block
constexpr Format kOneSample{kSide, kSide, 1}, kFourSamples{kSide, kSide, 4};

double Mean(const Bytes& picture) {
  return std::accumulate(picture.begin(), picture.end(), 0.0) / static_cast<double>(picture.size());
}

std::vector<float> Depths(const HandMadeModel& m, const HandMadeScene& s) {
  Renderer renderer(std::make_shared<const Assets>(m.model), kFourSamples);
  std::vector<float> out(kSide * kSide);
  renderer.DrawDepth(s.scene, out.data());
  return out;
}

/// Everything at once: a floor that mirrors, round shapes, a mesh, something transparent.
void AddEverything(HandMadeModel& m, HandMadeScene& s) {
  m.AddSphereMesh(24, 0.4F);
  m.AddTexture(16, [](int x, int y) {
    const int c = (x / 4 + y / 4) % 2 * 200 + 40;
    return std::vector<int>{c, c, 255 - c};
  });
  mjvGeom& floor = s.Add(mjGEOM_PLANE, 0, 3, -0.8F, 4, 4, 0.5F);
  floor.matid = 0, floor.reflectance = 0.3F;
  s.Add(mjGEOM_SPHERE, -0.8F, 3, 0, 0.4F).specular = 0.5F;
  s.Add(mjGEOM_CAPSULE, 0.9F, 3, 0, 0.2F, 0.2F, 0.4F);
  s.Add(mjGEOM_BOX, 0, 4, 0.8F, 0.3F, 0.2F, 0.4F).matid = 0;
  s.Add(mjGEOM_CYLINDER, -1.2F, 4, 0.5F, 0.2F, 0.2F, 0.3F);
  s.Add(mjGEOM_ELLIPSOID, 1.4F, 4, 0.5F, 0.2F, 0.3F, 0.5F);
  s.Add(mjGEOM_MESH, 0, 3, -0.2F, 0.4F).rgba[1] = 0.4F;
  s.Add(mjGEOM_SPHERE, 0.3F, 2, 0.1F, 0.3F).rgba[3] = 0.5F;
  s.AddLight(0.3F, 0.4F, -1, true);
  s.AddLight(0, 1, 0, false).diffuse[0] = 0.3F;
}

TEST(Render, DepthIsTheDistanceAlongTheView) {
  const HandMadeModel m;
  HandMadeScene s;
  s.Add(mjGEOM_SPHERE, 0, 3, 0, 0.5F);
  const std::vector<float> depths = Depths(m, s);
  EXPECT_NEAR(depths[kSide * kSide / 2], 2.5, 1e-5);
  EXPECT_EQ(depths[0], 50);  // nothing: the farthest that is seen
}

TEST(Render, AFineMeshHasNoHolesAndTheDepthsOfItsSphere) {
  for (const float distance : {0.8F, 1.5F, 3.0F}) {
    HandMadeModel m;
    m.AddSphereMesh(100, 0.5F);  // up to a hundred triangles a pixel
    HandMadeScene mesh, sphere;
    mesh.Add(mjGEOM_MESH, 0.1F, distance, 0.05F, 0.5F);
    sphere.Add(mjGEOM_SPHERE, 0.1F, distance, 0.05F, 0.5F);
    const std::vector<float> a = Depths(m, mesh), b = Depths(m, sphere);
    for (size_t i = 0; i < a.size(); ++i) {
      if (b[i] < distance - 0.25F) {
        EXPECT_NEAR(a[i], b[i], 0.02 * distance) << i;
      }
    }
  }
}

TEST(Render, SegmentsNameTheNearestObject) {
  const HandMadeModel m;
  HandMadeScene s;
  s.Add(mjGEOM_BOX, 0, 5, 0, 1);
  s.Add(mjGEOM_SPHERE, 0, 3, 0, 0.5F);
  s.Add(mjGEOM_SPHERE, 0, 2, 0, 0.5F).segid = -1;  // not shown
  Renderer renderer(std::make_shared<const Assets>(m.model), kOneSample);
  std::vector<int32_t> out(kSide * kSide * 2);
  renderer.Segment(s.scene, out.data());
  const size_t middle = kSide * kSide / 2;
  EXPECT_EQ(out[2 * middle], 1);
  EXPECT_EQ(out[2 * middle + 1], mjOBJ_GEOM);
  EXPECT_EQ(out[0], -1);
  EXPECT_EQ(out[1], -1);
}

TEST(Render, LightIsColourTimesCosine) {
  const HandMadeModel m;
  HandMadeScene s;
  s.Add(mjGEOM_BOX, 0, 3, 0, 0.5F).rgba[0] = 0.5F;
  s.AddLight(0, 1, -1, false);  // at 45 degrees to the side that is seen
  const int red = Red(Draw(m, s, kFourSamples), kSide, kSide / 2, kSide / 2);
  EXPECT_NEAR(red, 255 * 0.5 * std::sqrt(0.5), 1);
}

TEST(Render, ShapesAndMeshesCastShadows) {
  for (const int type : {mjGEOM_SPHERE, mjGEOM_MESH}) {
    HandMadeModel m;
    m.AddSphereMesh(16, 0.3F);
    HandMadeScene s;
    s.Add(mjGEOM_PLANE, 0, 3, -1, 5, 5, 1);
    s.Add(type, 0, 3, 0, 0.3F);
    s.AddLight(0, 0, -1, true);
    const Bytes picture = Draw(m, s, kFourSamples);
    const int row = static_cast<int>(kSide * 0.5 * (1 + 1.0 / 3));  // the floor 3 m away
    EXPECT_LT(Red(picture, kSide, kSide / 2, row), 20) << type;
    EXPECT_GT(Red(picture, kSide, kSide / 4, row), 250) << type;
    s.scene.flags[mjRND_SHADOW] = 0;
    EXPECT_GT(Red(Draw(m, s, kFourSamples), kSide, kSide / 2, row), 250) << type;
  }
}

TEST(Render, PlanesCastShadowsFromEitherSide) {
  const HandMadeModel m;
  for (const float up : {1.0F, -1.0F}) {
    HandMadeScene s;
    s.Add(mjGEOM_PLANE, 0, 3, -1, 5, 5, 1);
    mjvGeom& table = s.Add(mjGEOM_PLANE, 0, 3, 1.5F, 0.5F, 0.5F, 1);
    table.mat[4] = table.mat[8] = up;
    s.Add(mjGEOM_PLANE, 0, 3, -1, 5, 5, 1);  // in one place: they do not shade one another
    s.AddLight(0, 0, -1, true);
    const int row = static_cast<int>(kSide * 0.5 * (1 + 1.0 / 3));
    const Bytes picture = Draw(m, s, kFourSamples);
    EXPECT_LT(Red(picture, kSide, kSide / 2, row), 20);
    EXPECT_GT(Red(picture, kSide, kSide / 8, row), 250);
  }
}

TEST(Render, WhatIsBehindALightCastsNoShadow) {
  const HandMadeModel m;
  HandMadeScene s;
  s.Add(mjGEOM_PLANE, 0, 3, -1, 5, 5, 1);
  s.Add(mjGEOM_SPHERE, 0, 3, 0, 0.3F);
  const int row = static_cast<int>(kSide * 0.5 * (1 + 1.0 / 3));
  for (const bool is_behind : {false, true}) {
    HandMadeScene lit = s;
    lit.scene.geoms = lit.geoms.data();
    lit.AddLight(0, 0, -1, true).pos[2] = is_behind ? -0.5F : 0.5F;
    const int red = Red(Draw(m, lit, kFourSamples), kSide, kSide / 2, row);
    EXPECT_EQ(red > 250, is_behind) << red;
  }
}

TEST(Render, AMapOfShadowsWithoutSizeIsNone) {
  HandMadeModel m;
  m.model.vis.quality.shadowsize = 0;
  HandMadeScene s;
  s.Add(mjGEOM_PLANE, 0, 3, -1, 5, 5, 1);
  s.Add(mjGEOM_SPHERE, 0, 3, 0, 0.3F);
  s.AddLight(0, 0, -1, true);
  const int row = static_cast<int>(kSide * 0.5 * (1 + 1.0 / 3));
  EXPECT_GT(Red(Draw(m, s, kFourSamples), kSide, kSide / 2, row), 250);
}

TEST(Render, TheNinthLightIsNotSeen) {  // OpenGL has eight
  const HandMadeModel m;
  HandMadeScene s;
  s.Add(mjGEOM_BOX, 0, 3, 0, 0.5F);
  for (int i = 0; i < 8; ++i) s.AddLight(0, 1, 0, false).diffuse[0] = 0.1F;
  const Bytes eight = Draw(m, s, kFourSamples);
  s.AddLight(0, 1, 0, false);
  EXPECT_EQ(Draw(m, s, kFourSamples), eight);
  EXPECT_NEAR(Red(eight, kSide, kSide / 2, kSide / 2), 255 * 0.8, 1);
}

TEST(Render, ExponentsAreThoseOfOpenGl) {
  const HandMadeModel m;
  const auto drawn = [&](float shininess, float exponent) {
    HandMadeScene s;
    mjvGeom& ball = s.Add(mjGEOM_SPHERE, 0, 3, 0, 0.5F);
    ball.specular = 0.5F, ball.shininess = shininess;
    mjvLight& l = s.AddLight(0.2F, 1, 0, false);
    l.type = mjLIGHT_SPOT, l.exponent = exponent, l.cutoff = 60;
    l.attenuation[0] = l.specular[0] = 1;
    return Draw(m, s, kFourSamples);
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Bytes zero = drawn(0, 0);
  for (const float low : {-1e-9F, -1.0F, -1e30F, kNan}) {
    EXPECT_EQ(drawn(low, low), zero) << low;
  }
  EXPECT_EQ(drawn(50, 1e30F), drawn(1, 128));
  EXPECT_NE(drawn(1, 128), zero);
}

TEST(Render, TransparentShapesAreMixedInTwice) {  // as MuJoCo does: to the back and to the front
  const HandMadeModel m;
  HandMadeScene s;
  s.Add(mjGEOM_BOX, 0, 5, 0, 1);
  s.Add(mjGEOM_BOX, 0, 3, 0, 0.5F).rgba[3] = 0.4F;
  for (float& v : s.geoms[1].rgba) v = &v == &s.geoms[1].rgba[3] ? v : 0;
  s.AddLight(0, 1, 0, false);
  EXPECT_NEAR(Red(Draw(m, s, kFourSamples), kSide, kSide / 2, kSide / 2), 255 * 0.6 * 0.6, 1);
}

TEST(Render, ThereMayBeAnyNumberOfTransparentShapes) {
  const HandMadeModel m;
  HandMadeScene s;
  constexpr int kPanes = 30;
  for (int i = 0; i < kPanes; ++i) {
    const float place = 3 + 0.05F * static_cast<float>(i);
    mjvGeom& pane = s.Add(mjGEOM_BOX, 0, place, 0, 2, 0.001F, 2);
    pane.rgba[0] = i < kPanes / 2 ? 0 : 1, pane.rgba[3] = 0.05F;
  }
  s.AddLight(0, 1, 0, false);
  double expected = 0;
  for (int i = 0; i < 2 * kPanes; ++i) {
    const int pane = i < kPanes ? i : 2 * kPanes - 1 - i;
    expected += 0.05 * (s.geoms[pane].rgba[0] - expected);
  }
  EXPECT_NEAR(Red(Draw(m, s, kFourSamples), kSide, kSide / 2, kSide / 2), 255 * expected, 1);
}

TEST(Render, AMirrorShowsWhatIsBeforeIt) {
  const HandMadeModel m;
  HandMadeScene s;
  s.Add(mjGEOM_PLANE, 0, 3, -1, 5, 5, 1).reflectance = 0.5F;
  for (int k = 0; k < 3; ++k) s.geoms[0].rgba[k] = 0;
  s.Add(mjGEOM_SPHERE, 0, 4, -0.6F, 0.3F);
  s.AddLight(0, 1, 0, false);
  // its image is 1.4 m below the eye and 4 m away
  const int row = static_cast<int>(kSide * 0.5 * (1 + 1.35 / 4));
  EXPECT_GT(Red(Draw(m, s, kFourSamples), kSide, kSide / 2, row), 60);
  s.scene.flags[mjRND_REFLECTION] = 0;
  EXPECT_EQ(Red(Draw(m, s, kFourSamples), kSide, kSide / 2, row), 0);
}

TEST(Render, TexturesRepeatOverAPlane) {
  HandMadeModel m;
  m.AddTexture(2, [](int x, int y) {
    const int c = x == y ? 255 : 0;
    return std::vector<int>{c, c, c};
  });
  HandMadeScene s;
  mjvGeom& wall = s.Add(mjGEOM_PLANE, 0, 2, 0, 2, 2, 4);  // fills the view; one texel a quarter
  const float facing[9] = {1, 0, 0, 0, 0, -1, 0, 1, 0};
  std::copy(facing, facing + 9, wall.mat);
  wall.matid = 0;
  s.AddLight(0, 1, 0, false);
  const Bytes picture = Draw(m, s, kFourSamples);
  EXPECT_GT(Red(picture, kSide, kSide / 4, kSide / 4), 240);
  EXPECT_LT(Red(picture, kSide, kSide * 3 / 4, kSide / 4), 15);
  EXPECT_LT(Red(picture, kSide, kSide / 4, kSide * 3 / 4), 15);
  EXPECT_GT(Red(picture, kSide, kSide * 3 / 4, kSide * 3 / 4), 240);
}

TEST(Render, OrthographicPicturesDoNotDependOnTheDistance) {
  const HandMadeModel m;
  Bytes pictures[2];
  for (const int k : {0, 1}) {
    HandMadeScene s;
    for (mjvGLCamera& c : s.scene.camera) {
      c.orthographic = 1, c.frustum_top = 1, c.frustum_bottom = -1;
    }
    s.Add(mjGEOM_BOX, 0.1F, k == 0 ? 3.0F : 9.0F, 0, 0.5F);
    s.AddLight(0, 1, 0, false);
    pictures[k] = Draw(m, s, kFourSamples);
  }
  EXPECT_EQ(pictures[0], pictures[1]);
  EXPECT_NEAR(Mean(pictures[0]), 255 / 4.0, 2);  // half as wide and high as the view
}

TEST(Render, MoreSamplesMakeSmootherEdges) {
  const HandMadeModel m;
  HandMadeScene s;
  s.Add(mjGEOM_SPHERE, 0, 3, 0, 1).emission = 1;
  const auto shades = [&](int samples) {
    std::vector<bool> seen(256);
    for (const uint8_t c : Draw(m, s, {kSide, kSide, samples})) seen[c] = true;
    return std::count(seen.begin(), seen.end(), true);
  };
  EXPECT_EQ(shades(1), 2);
  EXPECT_EQ(shades(4), 5);
  EXPECT_GT(shades(16), 10);
}

TEST(Render, AnyThreadGivesTheSameBits) {
  HandMadeModel m;
  HandMadeScene s;
  AddEverything(m, s);
  HandMadeModel same;
  HandMadeScene turned;
  AddEverything(same, turned);
  for (mjvGLCamera& c : turned.scene.camera) c.forward[0] = 0.6F, c.forward[1] = 0.8F;
  const Bytes expected[] = {Draw(m, s, kFourSamples), Draw(m, turned, kFourSamples)};
  ASSERT_NE(expected[0], expected[1]);
  constexpr int kPictures = 1000;  // of each number of threads
  for (const int count : {1, 2, 8}) {
    const auto assets = std::make_shared<const Assets>(m.model);  // whose mesh is made meanwhile
    std::atomic<int> different = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        Renderer renderer(assets, kFourSamples);
        Bytes picture(expected[0].size());
        for (int k = 0; k < kPictures / count; ++k) {
          const int which = k / 2 % 2;
          renderer.Draw(which == 0 ? s.scene : turned.scene, picture.data());
          different += picture != expected[which] ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(different, 0);
  }
}

std::string MessageOf(const HandMadeScene& s) {
  const HandMadeModel m;
  Bytes before(kSide * kSide * 3, 7), out = before;
  Renderer renderer(std::make_shared<const Assets>(m.model), kFourSamples);
  try {
    renderer.Draw(s.scene, out.data());
  } catch (const UsageError& error) {
    EXPECT_EQ(out, before);  // nothing was written
    return error.what();
  }
  return {};
}

TEST(Render, WhatIsNotDrawnIsRefused) {
  HandMadeScene skin, label, wires, stereo, segments, depth;
  skin.Add(mjGEOM_SKIN, 0, 3, 0, 1);
  label.Add(mjGEOM_SPHERE, 0, 3, 0, 1).label[0] = 'a';
  wires.scene.flags[mjRND_WIREFRAME] = 1;
  stereo.scene.stereo = mjSTEREO_SIDEBYSIDE;
  segments.scene.flags[mjRND_SEGMENT] = depth.scene.flags[mjRND_HAZE + 1] = 1;
  EXPECT_NE(MessageOf(skin).find("skins"), std::string::npos);
  EXPECT_NE(MessageOf(label).find("labels"), std::string::npos);
  EXPECT_NE(MessageOf(wires).find("wireframes"), std::string::npos);
  EXPECT_NE(MessageOf(stereo).find("stereo"), std::string::npos);
  EXPECT_NE(MessageOf(segments).find("segments"), std::string::npos);
  EXPECT_NE(MessageOf(depth).find("depth"), std::string::npos);
}

TEST(Render, NumbersThatAreNotFiniteAreRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  HandMadeScene position, orientation, camera, light;
  position.Add(mjGEOM_SPHERE, kNan, 3, 0, 1);
  orientation.Add(mjGEOM_BOX, 0, 3, 0, 1).mat[4] = std::numeric_limits<float>::infinity();
  camera.scene.camera[0].pos[1] = kNan;
  light.AddLight(0, kNan, 0, true);
  EXPECT_NE(MessageOf(position).find("position of geom 0"), std::string::npos);
  EXPECT_NE(MessageOf(orientation).find("orientation of geom 0"), std::string::npos);
  EXPECT_NE(MessageOf(camera).find("camera's position"), std::string::npos);
  EXPECT_NE(MessageOf(light).find("of light 0"), std::string::npos);
}

TEST(Render, CoarserCopiesOfAMeshHaveFewerTrianglesNearItsOwn) {
  HandMadeModel m;
  m.AddSphereMesh(40, 1);
  const std::vector<Triangle> fine = ReadMesh(m.model, 0, false);
  const std::vector<Triangle> coarse = Simplify(fine, 0.2F);
  EXPECT_LT(coarse.size(), fine.size() / 4);
  for (const Triangle& t : coarse) {
    for (const Float3& p : t.at) EXPECT_NEAR(Length(p), 1, 0.2);
  }
}

}  // namespace
}  // namespace pyfastenv::render
