// MuJoCo models: loaded once, shared read-only by every worker.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <mujoco/mujoco.h>

namespace pyfastenv {

using SharedModel = std::shared_ptr<const mjModel>;

/// Loads an XML (or MJB) file.
/// Throws UsageError: kFileNotFound, or kValue with MuJoCo's message if it does not compile.
SharedModel LoadModel(const std::string& path);

/// The models of one vector environment; not synchronised.
class ModelCache {
 public:
  explicit ModelCache(std::string assets_dir) : assets_dir_(std::move(assets_dir)) {}

  /// A file name is looked up in the assets directory; a path with a slash is taken as it is.
  std::string Resolve(const std::string& xml_file) const;
  SharedModel Load(const std::string& path);

 private:
  std::string assets_dir_;
  std::map<std::string, SharedModel> models_;
};

}  // namespace pyfastenv
