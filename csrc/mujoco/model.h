// MuJoCo models: loaded once, shared read-only by every worker.
#pragma once

#include <mujoco/mujoco.h>

#include <map>
#include <memory>
#include <string>

namespace pyfastenv {

using SharedModel = std::shared_ptr<const mjModel>;

/// What a worker simulates of a model. Cameras and lights are for pictures, yet mj_step places them
/// in space at every substep: without them a step is 2 to 3 % faster and changes no bit of the
/// physics. Models with sensors or plugins, which may read cameras, are always simulated whole.
enum class ModelParts { kPhysics, kAll };

/// Loads an XML (or MJB) file.
/// Throws UsageError: kFileNotFound, or kValue with MuJoCo's message if it does not compile.
SharedModel LoadModel(const std::string& path);

/// The models of one vector environment; not synchronised.
class ModelCache {
 public:
  explicit ModelCache(std::string assets_dir, ModelParts parts = ModelParts::kPhysics)
      : assets_dir_(std::move(assets_dir)), parts_(parts) {}

  /// A file name is looked up in the assets directory; a path with a slash is taken as it is.
  std::string Resolve(const std::string& xml_file) const;
  SharedModel Load(const std::string& path);
  ModelParts parts() const { return parts_; }

 private:
  std::string assets_dir_;
  ModelParts parts_;
  std::map<std::string, SharedModel> models_;
};

}  // namespace pyfastenv
