#include "render/renderer.h"

#include <cstring>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/float_mode.h"

namespace pyfastenv::render {

namespace {

void Check(const Format& format) {
  const auto check = [](const char* name, int side) {
    if (side >= 1 && side <= Renderer::kMaxSide) return;
    throw BadValue(name, ": expected 1 to ", Renderer::kMaxSide, " pixels, got ", side);
  };
  check("height", format.height);
  check("width", format.width);
  if (format.samples != 1 && format.samples != 4 && format.samples != 16) {
    throw BadValue("samples: expected 1, 4 or 16, got ", format.samples);
  }
}

}  // namespace

SkyColors SkyMemory::Of(const Frame& f) {
  constexpr size_t kMostBlocks = 16'384;  // 3 MiB, up to 512 x 512 pixels
  const size_t blocks = static_cast<size_t>((f.width + kBlock - 1) / kBlock) *
                        static_cast<size_t>((f.height + kBlock - 1) / kBlock);
  if (f.sky == nullptr || blocks > kMostBlocks) return {};
  if (colors_.colors == nullptr) {
    colors_ = {arena_.Take<float>(blocks * 3 * kLanes), arena_.Take<uint8_t>(blocks)};
  } else if (f.sky == sky_ && f.view == view_) {
    return colors_;
  }
  std::memset(colors_.is_known, 0, blocks);
  sky_ = f.sky, view_ = f.view;
  return colors_;
}

Renderer::Renderer(std::shared_ptr<const Assets> assets, const Format& format,
                   const Kernels& kernels)
    : assets_(std::move(assets)),
      heights_(&assets_->heights()),
      look_(assets_->model()),
      format_(format),
      kernels_(kernels) {
  Check(format);
}

const Frame& Renderer::Read(const mjvScene& scene, Content content) {
  arena_.Reset();
  return reader_.Read(scene, {*assets_, *heights_, look_}, format_, content);
}

void Renderer::Draw(const mjvScene& scene, uint8_t* rgb) {
  Frame frame = Read(scene, Content::kColors);
  frame.sky_colors = sky_.Of(frame);
  const FloatScope scope(FloatMode::Default().Flushing());  // glows fade into slow denormals
  kernels_.draw(frame, arena_, rgb);
}

void Renderer::DrawDepth(const mjvScene& scene, float* depth) {
  kernels_.draw_seen(Read(scene, Content::kSegments), arena_, depth, nullptr);
}

void Renderer::Segment(const mjvScene& scene, int32_t* objects) {
  const Frame& frame = Read(scene, Content::kSegments);
  const size_t pixels = static_cast<size_t>(format_.width) * format_.height;
  int* shapes = arena_.Take<int>(pixels);
  kernels_.draw_seen(frame, arena_, nullptr, shapes);
  for (size_t i = 0; i < pixels; ++i, objects += 2) {
    const mjvGeom* g = shapes[i] < 0 ? nullptr : &scene.geoms[frame.shapes[shapes[i]].geom];
    objects[0] = g == nullptr ? -1 : g->objid;
    objects[1] = g == nullptr ? -1 : g->objtype;
  }
}

}  // namespace pyfastenv::render
