// Where results are written: non-owning views of the caller's arrays, one slot per environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "npy/dtype.h"

namespace pyfastenv {

/// The events of an environment in a call; bits of a result's `kind`.
enum ResultKind : uint8_t {
  kNoInfo = 0,
  kResetInfo = 1,  // its info is reset's: only the fields that are always there
  kStepInfo = 2,   // its info is step's: all fields
  kDiverged = 4,   // the physics blew up in this step
  kFinal = 8,      // SAME_STEP: the episode ended, final_obs and final_info are kept aside
  kFailed = 16,    // it raised; its other results are zero
};

struct InfoColumn {
  void* data = nullptr;  // (slots, width)
  DType dtype = DType::kFloat64;
  int width = 1;
};

/// All arrays are C-contiguous with one slot per result; they must outlive the call.
struct OutputViews {
  void* obs = nullptr;  // (slots, obs_size) of the vector environment's obs_dtype
  double* rewards = nullptr;
  uint8_t* terminations = nullptr;
  uint8_t* truncations = nullptr;
  uint8_t* kinds = nullptr;         // ResultKind bits
  std::vector<InfoColumn> columns;  // one per info field, or empty: infos are not wanted
};

/// A batch of actions; environment i's begins at data + i * stride bytes.
struct ActionViews {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  size_t stride = 0;

  const void* at(size_t i) const { return static_cast<const char*>(data) + i * stride; }
};

}  // namespace pyfastenv
