// Classes _core.RenderAssets and _core.Renderer: check arrays, release the GIL. pyfastenv/rendering
// is their caller, which keeps the mjModel and the mjvScene alive.
#include "render/renderer.h"

#include <mujoco/mujoco.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "bindings/gil.h"
#include "bindings/numpy_interop.h"
#include "core/errors.h"

namespace pyfastenv {

namespace {

using render::Assets;
using render::Format;

// The scene that mujoco.MjvScene holds. Its address is not public, but `flags` is an array of it.
const mjvScene& SceneOf(const py::object& scene) {
  constexpr auto kFlags = static_cast<ptrdiff_t>(offsetof(mjvScene, flags));
  auto* flags = static_cast<std::byte*>(
      OutputData(scene.attr("flags"), "scene.flags", {mjNRNDFLAG}, ArrayType::kUInt8));
  const auto* found = reinterpret_cast<const mjvScene*>(flags - kFlags);
  if (found->maxgeom != scene.attr("maxgeom").cast<int>() ||
      found->ngeom != scene.attr("ngeom").cast<int>()) {
    throw UsageError(UsageError::Code::kType, "scene: expected a mujoco.MjvScene of MuJoCo's own");
  }
  return *found;
}

class Renderer {
 public:
  Renderer(std::shared_ptr<const Assets> assets, int height, int width, int samples,
           const std::string& kernels)
      : renderer_(std::move(assets), {width, height, samples}, Kernels(kernels)) {}

  void Draw(const py::object& scene, const py::object& out) {
    auto* rgb = static_cast<uint8_t*>(OutputData(out, "out", Shape({3}), ArrayType::kUInt8));
    Run(scene, [&](const mjvScene& s) { renderer_.Draw(s, rgb); });
  }
  void DrawDepth(const py::object& scene, const py::object& out) {
    auto* depth = static_cast<float*>(OutputData(out, "out", Shape({}), ArrayType::kFloat32));
    Run(scene, [&](const mjvScene& s) { renderer_.DrawDepth(s, depth); });
  }
  void Segment(const py::object& scene, const py::object& out) {
    auto* objects = static_cast<int32_t*>(OutputData(out, "out", Shape({2}), ArrayType::kInt32));
    Run(scene, [&](const mjvScene& s) { renderer_.Segment(s, objects); });
  }

 private:
  static const render::Kernels& Kernels(const std::string& name) {
    if (name.empty()) return render::BestKernels();
    const render::Kernels* kernels = render::KernelsOf(name.c_str());
    if (kernels == nullptr) {
      throw UsageError(
          UsageError::Code::kValue,
          "kernels: expected avx512, avx2 or baseline that this processor has, got " + name);
    }
    return *kernels;
  }
  std::vector<int64_t> Shape(std::vector<int64_t> channels) const {
    channels.insert(channels.begin(), {renderer_.format().height, renderer_.format().width});
    return channels;
  }
  template <class F>
  void Run(const py::object& scene, const F& draw) {
    const mjvScene& s = SceneOf(scene);
    WithoutGil([&] {
      const std::lock_guard lock(mutex_);  // two threads may share a renderer, one after the other
      draw(s);
    });
  }

  render::Renderer renderer_;
  std::mutex mutex_;
};

}  // namespace

void BindRenderer(py::module_& m) {
  py::class_<Assets, std::shared_ptr<Assets>>(m, "RenderAssets",
                                              "A model's textures and meshes, ready to be drawn.")
      .def(py::init([](uintptr_t address) {
             const auto& model =
                 *reinterpret_cast<const mjModel*>(address);  // NOLINT(performance-no-int-to-ptr)
             return WithoutGil([&] { return std::make_shared<Assets>(model); });
           }),
           py::arg("model_address"))
      .def(
          "forget_heights", [](Assets& a) { a.heights().Forget(); },
          "Has the next picture read height fields from the model anew.");
  py::class_<Renderer>(m, "Renderer", "Draws scenes of one model; see pyfastenv.Renderer.")
      .def(py::init<std::shared_ptr<const Assets>, int, int, int, const std::string&>(),
           py::arg("assets"), py::kw_only(), py::arg("height"), py::arg("width"),
           py::arg("samples"), py::arg("kernels") = "")
      .def("draw", &Renderer::Draw, py::arg("scene"), py::arg("out"),
           "Writes colours, (height, width, 3) uint8.")
      .def("draw_depth", &Renderer::DrawDepth, py::arg("scene"), py::arg("out"),
           "Writes distances along the view, (height, width) float32 [m].")
      .def("segment", &Renderer::Segment, py::arg("scene"), py::arg("out"),
           "Writes objects' ids and types, (height, width, 2) int32.");
  m.def(
      "render_refusal", [](const py::object& scene) { return render::Refusal(SceneOf(scene)); },
      py::arg("scene"), "Why a mujoco.MjvScene is not drawn; empty if it is.");
}

}  // namespace pyfastenv
