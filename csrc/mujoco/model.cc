#include "mujoco/model.h"

#include <filesystem>

#include "core/errors.h"
#include "core/hash.h"
#include "mujoco/error_trap.h"
#include "mujoco/model_features.h"
#include "mujoco/model_image.h"

namespace pyfastenv {

namespace {

mjModel* LoadFile(const std::string& path, char* error, int error_size) {
  const bool binary = std::filesystem::path(path).extension() == ".mjb";
  return binary ? mj_loadModel(path.c_str(), nullptr)
                : mj_loadXML(path.c_str(), nullptr, error, error_size);
}

}  // namespace

SharedModel LoadModel(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) {
    throw UsageError(UsageError::Code::kFileNotFound, "model file ", path, " does not exist");
  }
  CheckNoCallbacks();  // compiling a model simulates it
  char error[1024] = "";
  mjModel* model = nullptr;
  try {
    Trapped([&] { model = LoadFile(path, error, sizeof(error)); });
  } catch (const MujocoError& engine_error) {
    throw BadValue(path, ": ", engine_error.what());
  }
  if (model == nullptr) throw BadValue(path, ": MuJoCo cannot load this model: ", error);
  return {model, [](const mjModel* m) { mj_deleteModel(const_cast<mjModel*>(m)); }};
}

std::string ModelDigest(const mjModel& model) {
  const std::string bytes = SavedModel(model);
  return std::to_string(Fnv1a(kEmptyHash, bytes.data(), bytes.size()));
}

std::string ModelCache::Resolve(const std::string& xml_file) const {
  if (xml_file.find('/') != std::string::npos) return xml_file;
  return (std::filesystem::path(assets_dir_) / xml_file).string();
}

SharedModel ModelCache::Load(const std::string& path) {
  SharedModel& model = models_[path];
  if (!model) model = LoadModel(path);
  return model;
}

const LanePlans& ModelCache::Plans(const std::string& path, const mjModel& model,
                                   const std::vector<std::string>& fields) {
  std::shared_ptr<const LanePlans>& plans = plans_[{path, fields}];
  if (!plans) plans = FindLanePlans(model, *Load(path), fields);
  return *plans;
}

}  // namespace pyfastenv
