// The speed that no vector environment on this engine can pass: a bare mj_step loop.
//
// Each thread runs its share of the environments over their state rows (load, mj_step x frame_skip,
// save), with the same model, actions and resets as the vector environment, and nothing else: no
// barrier, observation, reward, info or Python.
#pragma once

#include <string>
#include <vector>

#include "core/params.h"

namespace pyfastenv {

struct PhysicsLimitOptions {
  std::string env_id;
  std::string assets_dir;
  int num_envs = 1;
  int num_threads = 1;
  int num_steps = 1;               // calls per environment, resets included (NEXT_STEP)
  const float* actions = nullptr;  // (num_steps, num_envs, action_size)
  uint32_t seed = 0;               // environment i starts from seed + i
};

/// Environment calls per second, summed over the threads.
double MeasurePhysicsLimit(const PhysicsLimitOptions& options);

}  // namespace pyfastenv
