#include "envs/pixel_camera.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/errors.h"

namespace pyfastenv {

namespace {

constexpr int kMostObjects = 255;  // of a segmentation, nothing included
constexpr int kMoreGeoms = 1000;   // of a scene than the model's: rays, what else MuJoCo shows
constexpr int kCable = 32;         // geoms of a tendon that hangs
constexpr int kMostGeoms = 1 << 24;

int SamplesOf(const mjModel& m) {
  const int wanted = m.vis.quality.offsamples;
  return wanted < 2 ? 1 : wanted < 9 ? 4 : 16;
}

render::Format FormatOf(const mjModel& m, const PixelOptions& options) {
  return {options.frames.width, options.frames.height,
          options.samples > 0 ? options.samples : SamplesOf(m)};
}

std::string CameraName(const mjModel& m, int camera) { return m.names + m.name_camadr[camera]; }

int FindCamera(const mjModel& m, const std::string& name) {
  std::string known;
  for (int i = 0; i < m.ncam; ++i) {
    if (CameraName(m, i) == name) return i;
    known += (known.empty() ? "" : ", ") + CameraName(m, i);
  }
  throw BadValue("pixels: camera: no camera '", name,
                 "'; this model has: ", known.empty() ? "none" : known);
}

bool IsOfHeights(const std::string& field) {
  return field == "hfield_data" || field == "hfield_size";
}

/// mjModel.sensor_needstage with which mj_sensorPos computes range finders alone.
std::vector<int> RayStages(const mjModel& m) {
  std::vector<int> stages(static_cast<size_t>(m.nsensor), mjSTAGE_ACC);
  bool has_rays = false;
  for (int i = 0; i < m.nsensor; ++i) {
    if (m.sensor_type[i] != mjSENS_RANGEFINDER) continue;
    stages[i] = m.sensor_needstage[i], has_rays = true;
  }
  return has_rays ? stages : std::vector<int>();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void CheckNumber(const char* what, int number, int count) {
  if (number >= 0 && number < count) return;
  throw BadValue("pixels: camera: expected ", what, " from 0 to ", count - 1, ", got ", number);
}

/// `data`: in the default pose.
mjvCamera FreeCamera(const mjModel& m, const mjData& data, const CameraChoice& choice) {
  mjvCamera camera;
  mjv_defaultCamera(&camera);
  for (int k = 0; k < 3; ++k) {
    std::vector<double> places;
    for (int i = 0; i < m.ngeom; ++i) places.push_back(data.geom_xpos[3 * i + k]);
    camera.lookat[k] = choice.lookat ? (*choice.lookat)[static_cast<size_t>(k)]
                                     : (places.empty() ? 0.0 : Median(places));
  }
  camera.distance = choice.distance.value_or(m.stat.extent);
  camera.azimuth = choice.azimuth.value_or(camera.azimuth);
  camera.elevation = choice.elevation.value_or(camera.elevation);
  if (choice.tracked_body) {
    CheckNumber("a body", *choice.tracked_body, static_cast<int>(m.nbody));
    camera.type = mjCAMERA_TRACKING;
    camera.trackbodyid = *choice.tracked_body;
  }
  return camera;
}

mjvCamera CameraOf(const mjModel& m, const mjData& data, const CameraChoice& choice) {
  if (!choice.name && !choice.number) return FreeCamera(m, data, choice);
  mjvCamera camera;
  mjv_defaultCamera(&camera);
  camera.type = mjCAMERA_FIXED;
  camera.fixedcamid = choice.name ? FindCamera(m, *choice.name) : *choice.number;
  if (m.ncam == 0) throw BadValue("pixels: camera: this model has none");
  CheckNumber("a camera", camera.fixedcamid, static_cast<int>(m.ncam));
  return camera;
}

}  // namespace

MakeFrameSource PixelCamera::Maker(SharedModel model, const PixelOptions& options) {
  if (options.segmentation && model->ngeom >= kMostObjects) {
    throw BadValue("pixels: segmentation: expected a model with fewer than ", kMostObjects,
                   " geoms, got ", model->ngeom);
  }
  auto assets = std::make_shared<const render::Assets>(*model);
  auto make = [=]() -> std::unique_ptr<PixelCamera> {
    return std::make_unique<PixelCamera>(model, options, assets);
  };
  auto first = std::make_shared<std::unique_ptr<PixelCamera>>(make());
  const std::string refusal = render::Refusal((*first)->scene_);
  if (!refusal.empty()) throw BadValue("pixels: ", refusal);
  return [=]() -> std::unique_ptr<FrameSource> { return *first ? std::move(*first) : make(); };
}

PixelCamera::PixelCamera(SharedModel model, PixelOptions options,
                         std::shared_ptr<const render::Assets> assets)
    : options_(std::move(options)),
      workspace_(std::move(model), ModelParts::kAll),
      heights_(workspace_.model()),
      ray_stages_(RayStages(workspace_.model())),
      renderer_(std::move(assets), FormatOf(workspace_.model(), options_)) {
  for (const FieldPlace& field : options_.own_fields) {
    own_heights_ = own_heights_ || IsOfHeights(field.name);
    if (IsNarrowField(field.name)) continue;
    own_fields_.push_back(FindModelField(workspace_.model(), field.name));
  }
  if (own_heights_) renderer_.UseHeights(heights_);
  const mjModel& m = workspace_.model();
  mjv_defaultOption(&visible_);
  workspace_.Forward();
  camera_ = CameraOf(m, workspace_.data(), options_.camera);
  const auto pixels =
      static_cast<size_t>(options_.frames.height) * static_cast<size_t>(options_.frames.width);
  colors_.resize(3 * pixels);
  if (options_.depth > 0.0) depth_.resize(pixels);
  if (options_.segmentation) objects_.resize(2 * pixels);
  mjv_defaultScene(&scene_);
  try {
    MakeScene(static_cast<int>(m.ngeom + m.nsite + 2 * m.nwrap + kCable * m.ntendon + kMoreGeoms));
    UpdateScene();
  } catch (...) {
    mjv_freeScene(&scene_);
    throw;
  }
}

PixelCamera::~PixelCamera() { mjv_freeScene(&scene_); }

void PixelCamera::Prepare(const RowLayout& layout) {
  std::vector<ModelField> fields;
  for (const RowField& field : layout.added()) {
    fields.push_back(FindModelField(workspace_.model(), field.name));
  }
  workspace_.PrepareFields(std::move(fields));
}

void PixelCamera::Adopt(const RowLayout& layout) noexcept {
  workspace_.AdoptFields();
  fields_offset_ = layout.fields().offset;
  if (own_heights_) return;
  const auto& added = layout.added();
  own_heights_ = std::any_of(added.begin(), added.end(),
                             [](const RowField& field) { return IsOfHeights(field.name); });
  if (own_heights_) renderer_.UseHeights(heights_);
}

void PixelCamera::PointFields(const double* row) {
  workspace_.SwapFields(row + fields_offset_);
  // read only, as in SwapFields
  auto* values = const_cast<double*>(row);
  for (size_t i = 0; i < options_.own_fields.size(); ++i) {
    const auto& [name, offset] = options_.own_fields[i];
    if (i < own_fields_.size()) {
      workspace_.PointField(own_fields_[i], values + offset);
    } else {
      workspace_.PointNarrow(name, values + offset);
    }
  }
  if (own_heights_) heights_.Forget();
}

void PixelCamera::MakeScene(int max_geoms) {
  Trapped([&] {
    mjv_freeScene(&scene_);
    mjv_makeScene(&workspace_.model(), &scene_, max_geoms);
  });
}

void PixelCamera::UpdateScene() {
  workspace_.Run([this] {
    const mjModel* m = &workspace_.model();
    mjData* d = &workspace_.data();
    mj_kinematics(m, d);
    mj_comPos(m, d);
    mj_camlight(m, d);
    mj_tendon(m, d);
    if (ray_stages_.empty()) return;
    mjModel header = *m;
    header.sensor_needstage = ray_stages_.data(), header.nplugin = 0;
    mj_sensorPos(&header, d);
  });
  for (;;) {
    workspace_.Run([this] {
      mjv_updateScene(&workspace_.model(), &workspace_.data(), &visible_, nullptr, &camera_,
                      mjCAT_ALL, &scene_);
    });
    if (scene_.ngeom < scene_.maxgeom || scene_.maxgeom >= kMostGeoms) return;
    MakeScene(2 * scene_.maxgeom);
  }
}

void PixelCamera::Draw(const double* row, uint8_t* frame) {
  PointFields(row);
  workspace_.Load(row);
  UpdateScene();
  const int channels = options_.channels();
  if (channels == 3) {
    renderer_.Draw(scene_, frame);
    return;
  }
  renderer_.Draw(scene_, colors_.data());
  if (!depth_.empty()) renderer_.DrawDepth(scene_, depth_.data());
  if (!objects_.empty()) renderer_.Segment(scene_, objects_.data());
  const auto pixels = colors_.size() / 3;
  const float far = scene_.camera[0].frustum_far;  // where nothing is seen
  for (size_t i = 0; i < pixels; ++i) {
    frame = std::copy_n(&colors_[3 * i], 3, frame);
    if (!depth_.empty()) {
      const double share = depth_[i] < far ? std::min(depth_[i] / options_.depth, 1.0) : 1.0;
      *frame++ = static_cast<uint8_t>(std::lround(255.0 * share));
    }
    if (!objects_.empty()) {
      const bool is_geom = objects_[2 * i + 1] == mjOBJ_GEOM;
      *frame++ = static_cast<uint8_t>(is_geom ? objects_[2 * i] + 1 : 0);
    }
  }
}

}  // namespace pyfastenv
