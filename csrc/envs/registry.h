// The table of environments: an id, what makes one, and how gymnasium registers it.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/env.h"
#include "core/params.h"
#include "mujoco/model.h"

namespace pyfastenv {

/// Gymnasium's two generations: v5 takes xml_file and frame_skip everywhere and reports more infos.
enum class GymVersion { kV4, kV5 };

/// Makes one worker's environment. May throw UsageError and BadParamType.
using EnvFactory = std::unique_ptr<Environment> (*)(const Params& params, ModelCache& models,
                                                    GymVersion version);

/// The EnvFactory of a class whose constructor takes the first of these arguments that it needs.
template <class E>
std::unique_ptr<Environment> Make([[maybe_unused]] const Params& params,
                                  [[maybe_unused]] ModelCache& models,
                                  [[maybe_unused]] GymVersion version) {
  if constexpr (std::is_constructible_v<E, const Params&, ModelCache&, GymVersion>) {
    return std::make_unique<E>(params, models, version);
  } else if constexpr (std::is_constructible_v<E, const Params&, ModelCache&>) {
    return std::make_unique<E>(params, models);
  } else if constexpr (std::is_constructible_v<E, const Params&>) {
    return std::make_unique<E>(params);
  } else {
    return std::make_unique<E>();
  }
}

struct EnvEntry {
  const char* id;
  EnvFactory make;
  GymVersion version;
  int max_episode_steps;
  double reward_threshold;  // NaN: none
};

const std::vector<EnvEntry>& Registry();

/// Throws UsageError (kValue) where there is none.
const EnvEntry& FindEnv(const std::string& id);

}  // namespace pyfastenv
