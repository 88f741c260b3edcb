#include "physics/plan_cache.h"

#include <algorithm>

#include "core/float_mode.h"
#include "lanes/features.h"
#include "lanes/number_access.h"
#include "lanes/sensors.h"
#include "mujoco/lane_plans.h"
#include "mujoco/model_features.h"

namespace pyfastenv::physics {

namespace {

constexpr size_t kMaxEntries = 16;

}  // namespace

PlanCache::Entry::Entry(const mjModel& model, const lanes::Kernels& on, uint64_t own)
    : image(model),
      kernels(&on),
      numbers(own),
      unsupported_sensor(lanes::UnsupportedSensordata(model, lanes::NamesOf(own))) {
  if (!unsupported_sensor.empty()) unsupported_sensor.insert(0, "lanes do not do ");
}

void PlanCache::Entry::Begin(const mjModel& model) {
  if (trust != nullptr) return;
  trust = FindLaneTrust(model);
  choice = std::make_shared<EngineChoice>(MeasuresEngines());
}

// One that takes more numbers than asked for will do, but not for a model alone, whose plan has its
// numbers folded in.
PlanCache::Entry& PlanCache::EntryOf(const mjModel& model, const lanes::Kernels& kernels,
                                     uint64_t numbers) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const bool takes = (numbers & ~entry.numbers) == 0 && (numbers != 0) == (entry.numbers != 0);
    if (entry.kernels != &kernels || !takes) return false;
    const std::optional<uint64_t> differences = entry.image.Differences(model);
    return differences && (*differences & ~entry.numbers) == 0;
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    entries_.emplace_front(model, kernels, numbers);
    if (entries_.size() > kMaxEntries) entries_.pop_back();
  }
  return entries_.front();
}

PlanInUse PlanCache::Find(const mjModel& model, const lanes::Kernels& kernels, int64_t num_steps,
                          bool sensordata, uint64_t numbers) {
  // callbacks are not the model's: they may be set at any time
  if (ActiveCallback() != nullptr) return {};
  const DefaultFloats floats;  // a plan is compared with mj_step
  const std::lock_guard lock(mutex_);
  Entry& entry = EntryOf(model, kernels, numbers);
  if (sensordata && !entry.unsupported_sensor.empty()) return {};
  entry.num_steps += num_steps;
  if (!entry.made && entry.num_steps >= kStepsThatPay) {
    entry.Begin(model);
    if (!entry.trust->broken()) {
      entry.result = lanes::Plan::Make(model, kernels, lanes::NamesOf(entry.numbers), nullptr,
                                       entry.sensing());
    }
    entry.made = true;
  }
  if (entry.result.plan == nullptr || entry.trust->broken()) return {};
  if (!entry.choice->lanes() && numbers == 0) {
    if (slow_.size() >= kMaxEntries) slow_.clear();
    slow_[&model] = entry.choice;
  }
  return {entry.result.plan, entry.choice, entry.trust};
}

bool PlanCache::LeavesToMujoco(const mjModel& model, int64_t group_steps) {
  const std::lock_guard lock(mutex_);
  const auto found = slow_.find(&model);
  return found != slow_.end() && !found->second->lanes() && found->second->Skip(group_steps);
}

std::string PlanCache::Refusal(const mjModel& model, bool sensordata) {
  if (const char* callback = ActiveCallback(); callback != nullptr) {
    return std::string("the callback ").append(callback).append(" is set");
  }
  const lanes::Kernels& kernels = lanes::BestKernels();
  {
    const std::lock_guard lock(mutex_);
    if (EntryOf(model, kernels).unchecked) entries_.pop_front();
  }
  Find(model, kernels, kStepsThatPay, /*sensordata=*/false);
  const std::lock_guard lock(mutex_);
  const Entry& entry = EntryOf(model, kernels);
  // without trust only if other threads' models have pushed it out again meanwhile
  const bool broken = entry.trust != nullptr && entry.trust->broken();
  if (broken) return entry.trust->difference();
  return sensordata && entry.result.refusal.empty() ? entry.unsupported_sensor
                                                    : entry.result.refusal;
}

std::string PlanCache::Reason(const mjModel& model, bool sensordata) {
  std::string refusal = Refusal(model, sensordata);
  if (!refusal.empty()) return refusal;
  const std::lock_guard lock(mutex_);
  const Entry& entry = EntryOf(model, lanes::BestKernels());
  return entry.choice != nullptr ? entry.choice->reason() : std::string();
}

std::string PlanCache::RefusalUnchecked(const mjModel& model, bool sensordata) {
  const lanes::Kernels& kernels = lanes::BestKernels();
  const std::lock_guard lock(mutex_);
  slow_.erase(&model);
  Entry& entry = EntryOf(model, kernels);
  entry.trust = std::make_shared<LaneTrust>();
  entry.choice = EngineChoice::Untried();
  entry.result = lanes::Plan::MakeUnchecked(model, kernels, {}, nullptr, entry.sensing());
  entry.made = entry.unchecked = true;
  return sensordata && entry.result.refusal.empty() ? entry.unsupported_sensor
                                                    : entry.result.refusal;
}

}  // namespace pyfastenv::physics
