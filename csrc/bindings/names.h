// The core's enumerations by their names in Python, and the sizes they come with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "learn/bf16_kernels.h"
#include "nn/policy.h"

namespace pyfastenv {

template <class T>
T Lookup(const char* what, const std::map<std::string, T>& names, const std::string& name) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  std::string known;
  for (const auto& [key, value] : names) known += (known.empty() ? "" : ", ") + key;
  throw BadValue(what, ": expected one of ", known, ", got '", name, "'");
}

inline Activation ToActivation(const std::string& name) {
  return Lookup<Activation>("activation",
                            {{"tanh", Activation::kTanh},
                             {"relu", Activation::kRelu},
                             {"elu", Activation::kElu},
                             {"silu", Activation::kSilu},
                             {"identity", Activation::kIdentity}},
                            name);
}

inline Distribution ToDistribution(const std::string& name) {
  return Lookup<Distribution>("distribution",
                              {{"categorical", Distribution::kCategorical},
                               {"gaussian", Distribution::kGaussian},
                               {"tanh_gaussian", Distribution::kTanhGaussian},
                               {"deterministic", Distribution::kDeterministic}},
                              name);
}

/// Refuses a number of rows, units, … that is not from 1 to a million: sizes are multiplied with
/// each other in ints.
inline void CheckSize(const char* name, int64_t size) {
  constexpr int64_t kMost = 1'000'000;
  if (size >= 1 && size <= kMost) return;
  throw BadValue(name, ": expected 1 to ", kMost, ", got ", size);
}

/// Refuses hidden layers that are none, or not of such a size.
inline void CheckHiddenSizes(const std::vector<int>& sizes) {
  for (const int size : sizes) CheckSize("hidden_sizes", size);
  if (!sizes.empty()) return;
  throw BadValue("hidden_sizes: expected at least one layer");
}

/// Refuses what only a processor that multiplies bfloat16 numbers can do.
inline void CheckBf16(const char* what) {
  if (BestBf16Kernels() != nullptr) return;
  throw BadValue(what, ": this machine has neither AMX nor AVX512-BF16");
}

/// Refuses an optimiser's count of steps made before.
inline void CheckStep(int64_t step) {
  if (step >= 0) return;
  throw BadValue("step: expected an integer >= 0, got ", step);
}

}  // namespace pyfastenv
