#include "bindings/pixels.h"

#include <pybind11/stl.h>

#include "bindings/keywords.h"

namespace pyfastenv {

Pixels ReadPixels(const py::object& given) {
  Pixels pixels;
  PixelOptions& options = pixels.options;
  FrameStack& frames = options.frames;
  CameraChoice& camera = options.camera;
  const auto keywords = given.cast<py::kwargs>();
  Keywords read("VectorEnv: pixels", keywords);
  read.Read("height", frames.height);
  read.Read("width", frames.width);
  read.Read("frame_stack", frames.stack);
  read.Read("channels_first", frames.channels_first);
  read.Read("render_every", frames.every);
  read.Read("depth", options.depth);
  read.Read("segmentation", options.segmentation);
  read.Read("samples", options.samples);
  read.Read("with_state", pixels.with_state);
  read.Read("identity", pixels.identity);
  read.Read("camera_name", camera.name);
  read.Read("camera_id", camera.number);
  read.Read("trackbodyid", camera.tracked_body);
  read.Read("lookat", camera.lookat);
  read.Read("distance", camera.distance);
  read.Read("azimuth", camera.azimuth);
  read.Read("elevation", camera.elevation);
  read.CheckAllRead();
  frames.channels = options.channels();
  return pixels;
}

}  // namespace pyfastenv
