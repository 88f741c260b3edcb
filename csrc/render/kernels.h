// The compiled ways to draw a Frame, one for each instruction set.
#pragma once

#include "render/arena.h"
#include "render/frame.h"

namespace pyfastenv::render {

struct Kernels {
  /// Writes a picture, (height, width, 3). The arena must be fresh.
  void (*draw)(const Frame& frame, Arena& arena, uint8_t* rgb);
  /// Writes depths along the view and indices of shapes, -1: none, (height, width) each; either may
  /// be null. frame.samples is 1 and no shape is transparent.
  void (*draw_seen)(const Frame& frame, Arena& arena, float* depth, int* shape);
};

/// That of an instruction set, "avx512", "avx2" or "baseline"; null: this processor lacks it.
const Kernels* KernelsOf(const char* name);

/// The fastest that this processor runs; that named by PYFASTENV_RENDER, if it is set.
/// Throws std::invalid_argument: there is none of that name here.
const Kernels& BestKernels();

}  // namespace pyfastenv::render
