// MuJoCo models: loaded once, shared read-only by every worker.
#pragma once

#include <mujoco/mujoco.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine_choice.h"
#include "mujoco/lane_plans.h"

namespace pyfastenv {

using SharedModel = std::shared_ptr<const mjModel>;

/// The parts of a model that a worker simulates. kPhysics leaves out what mj_step does for nothing,
/// none of which changes a bit of the physics:
/// - cameras and lights, which it places in space at every substep (2 to 3 % of a step), unless the
///   model has sensors or plugins, which may read them;
/// - the search for contacts, where no two geoms may touch (20 % of InvertedDoublePendulum's step).
enum class ModelParts { kPhysics, kAll };

/// Loads an XML (or MJB) file.
/// Throws UsageError: kFileNotFound, or kValue with MuJoCo's message if it does not compile.
SharedModel LoadModel(const std::string& path);

/// A hash of everything in a model.
std::string ModelDigest(const mjModel& model);

/// The models of one vector environment; not synchronised.
class ModelCache {
 public:
  explicit ModelCache(std::string assets_dir, ModelParts parts = ModelParts::kPhysics,
                      Engine engine = Engine::kMujoco)
      : assets_dir_(std::move(assets_dir)),
        parts_(parts),
        engine_(engine),
        choice_(std::make_shared<EngineChoice>(engine == Engine::kAuto && MeasuresEngines())) {}

  /// A file name is looked up in the assets directory; a path with a slash is taken as it is.
  std::string Resolve(const std::string& xml_file) const;
  SharedModel Load(const std::string& path);
  /// From now on, Load of this path (with a slash) gives a model that is no file.
  void Add(const std::string& path, SharedModel model) { models_[path] = std::move(model); }
  ModelParts parts() const { return parts_; }
  Engine engine() const { return engine_; }
  /// Between lanes and mj_step, by all workers of the vector environment.
  const std::shared_ptr<EngineChoice>& choice() const { return choice_; }
  /// FindLanePlans of a model that was loaded from this path.
  const LanePlans& Plans(const std::string& path, const mjModel& model,
                         const std::vector<std::string>& fields);

 private:
  std::string assets_dir_;
  ModelParts parts_;
  Engine engine_;
  std::shared_ptr<EngineChoice> choice_;
  std::map<std::string, SharedModel> models_;
  std::map<std::pair<std::string, std::vector<std::string>>, std::shared_ptr<const LanePlans>>
      plans_;
};

}  // namespace pyfastenv
