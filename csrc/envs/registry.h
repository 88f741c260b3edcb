// The table of environments: an id, what makes one, and how gymnasium registers it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/env.h"
#include "core/params.h"
#include "mujoco/model.h"

namespace pyfastenv {

/// Makes one worker's environment. May throw UsageError and BadParamType.
using EnvFactory = std::unique_ptr<Environment> (*)(const Params& params, ModelCache& models);

struct EnvEntry {
  const char* id;
  EnvFactory make;
  int max_episode_steps;
  double reward_threshold;  // NaN: none
};

const std::vector<EnvEntry>& Registry();

/// Throws UsageError (kValue) where there is none.
const EnvEntry& FindEnv(const std::string& id);

}  // namespace pyfastenv
