// Pictures as observations, as Python describes them (pyfastenv/vector/pixels.py).
#pragma once

#include <pybind11/pybind11.h>

#include "envs/pixel_camera.h"

namespace pyfastenv {

/// A description, read.
struct Pixels {
  PixelOptions options;
  bool with_state = false;
  std::string identity;  // of all that a frame depends on
};

/// From the dict that PixelObservations.description makes. Throws TypeError for unfit or missing
/// entries.
Pixels ReadPixels(const pybind11::object& given);

}  // namespace pyfastenv
