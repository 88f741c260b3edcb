// A copy of all numbers of a model that its physics may depend on, to see whether it is still the
// same.
//
// A model belongs to its user, who may change any of its arrays and options between two calls.
// Comparing beats hashing: it cannot be fooled, and stops at the first difference. Left out is what
// a step does not read, and may be megabytes: textures, materials, skins, keyframes, of meshes the
// faces and their bounding volumes, and all of meshes that nothing can touch; and of those that
// touch, the hulls and their faces, the most of a robot arm's numbers, which lanes read of the
// model at hand.
#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyfastenv {

class ModelImage {
 public:
  explicit ModelImage(const mjModel& model);

  bool Matches(const mjModel& model) const { return Differences(model) == 0u; }
  /// In which fields that environments may have their own of (lanes/numbers.h) a model differs, as
  /// bits of lanes::Number; nothing if it differs in anything else.
  std::optional<uint64_t> Differences(const mjModel& model) const;
  /// Equal for models that match.
  size_t Hash() const;
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

/// Everything in a model, as a file has it. Throws MujocoError.
std::string SavedModel(const mjModel& model);

/// Whether physics, and plans for lanes, may depend on an array of the model ("geom_rgba": no).
bool IsRead(const mjModel& model, std::string_view array);

/// Whether a data made for `made_for` has room for every array that a step of `model` writes.
bool DataFits(const mjModel& model, const mjModel& made_for);

/// Whether a data and a state of either model are as large as the other's.
bool SameSizes(const mjModel& a, const mjModel& b);

}  // namespace pyfastenv
