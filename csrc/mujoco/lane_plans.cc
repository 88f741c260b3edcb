#include "mujoco/lane_plans.h"

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/errors.h"
#include "core/fork.h"
#include "lanes/self_check.h"
#include "mujoco/model_image.h"

namespace pyfastenv {

namespace {

// So many models are remembered: a process that makes thousands (a fuzzer) forgets all and begins
// anew.
constexpr size_t kMostRemembered = 256;

// Size and hash of the model's contents, the lanes that are asked for, and fields.
using Key = std::tuple<size_t, size_t, int, std::vector<std::string>>;

Key KeyOf(const mjModel& model, int width, const std::vector<std::string>& fields) {
  const std::string bytes = SavedModel(model);
  return {bytes.size(), std::hash<std::string_view>()(bytes), width, fields};
}

LanePlans MakePlans(const mjModel& model, const mjModel& whole, int widest,
                    const std::vector<std::string>& fields) {
  LanePlans made;
  for (const int width : {1, 2, 4, 8}) {
    if (width == 2 && widest > 2) continue;  // half of four lanes, which have programs, are faster
    const lanes::Kernels* kernels = width <= widest ? lanes::KernelsOfWidth(width) : nullptr;
    if (kernels == nullptr) continue;
    lanes::PlanResult result = lanes::Plan::MakeUnchecked(model, *kernels, fields, &whole);
    if (result.plan == nullptr) return {{}, std::move(result.refusal), {}};
    made.plans.push_back(std::move(result.plan));
  }
  // one trial for all: mj_step takes most of its time
  std::string difference = lanes::SelfCheck(model, made.plans);
  if (!difference.empty()) return {{}, std::move(difference), {}};
  return made;
}

// These plans, unless lanes have been seen to differ since they were made.
std::shared_ptr<const LanePlans> Trusted(std::shared_ptr<const LanePlans> plans) {
  if (!plans->trust->broken()) return plans;
  return std::make_shared<const LanePlans>(LanePlans{{}, plans->trust->difference(), plans->trust});
}

struct Memory {
  std::mutex mutex;
  std::map<Key, std::shared_ptr<const LanePlans>> known;
};

int WidestLanes() {
  try {
    return lanes::BestKernels().width;
  } catch (const std::invalid_argument& error) {
    throw BadValue(error.what());
  }
}

}  // namespace

bool MeasuresEngines() {
  const char* value = std::getenv("PYFASTENV_MEASURE");
  return value == nullptr || std::string_view(value) != "0";
}

std::shared_ptr<const LanePlans> FindLanePlans(const mjModel& model, const mjModel& whole,
                                               const std::vector<std::string>& fields) {
  auto& [mutex, known] = OfThisProcess<Memory>();
  const int widest = WidestLanes();
  const Key key = KeyOf(model, widest, fields);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return Trusted(found->second);
  }
  std::shared_ptr<LaneTrust> trust = FindLaneTrust(whole);
  LanePlans plans = trust->broken() ? LanePlans{} : MakePlans(model, whole, widest, fields);
  plans.trust = std::move(trust);
  auto made = std::make_shared<const LanePlans>(std::move(plans));
  const std::lock_guard lock(mutex);
  if (known.size() >= kMostRemembered) known.clear();
  return Trusted(known.emplace(key, std::move(made)).first->second);
}

}  // namespace pyfastenv
