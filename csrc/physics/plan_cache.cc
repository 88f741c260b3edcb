#include "physics/plan_cache.h"

#include <algorithm>

#include "core/float_mode.h"
#include "lanes/features.h"
#include "mujoco/model_features.h"

namespace pyfastenv::physics {

namespace {

// Making a plan takes about as long as so many steps of mj_step (bench/python/physics.py).
constexpr int64_t kStepsThatPay = 2000;
constexpr size_t kMaxEntries = 16;

}  // namespace

PlanCache::Entry& PlanCache::EntryOf(const mjModel& model, const lanes::Kernels& kernels) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.kernels == &kernels && entry.image.Matches(model);
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    entries_.emplace_front(model, kernels);
    if (entries_.size() > kMaxEntries) entries_.pop_back();
  }
  return entries_.front();
}

std::shared_ptr<const lanes::Plan> PlanCache::Find(const mjModel& model,
                                                   const lanes::Kernels& kernels,
                                                   int64_t num_steps) {
  // callbacks are not the model's: they may be set at any time
  if (ActiveCallback() != nullptr || model.nsensordata > 0) return nullptr;
  const DefaultFloats floats;  // a plan is compared with mj_step
  const std::lock_guard lock(mutex_);
  Entry& entry = EntryOf(model, kernels);
  entry.num_steps += num_steps;
  if (!entry.made && entry.num_steps >= kStepsThatPay) {
    entry.result = lanes::Plan::Make(model, kernels);
    entry.made = true;
  }
  return entry.result.plan;
}

std::string PlanCache::Refusal(const mjModel& model) {
  if (const char* callback = ActiveCallback(); callback != nullptr) {
    return std::string("the callback ").append(callback).append(" is set");
  }
  if (model.nsensordata > 0) return "lanes do not do sensors, whose data rollouts return";
  const lanes::Kernels& kernels = lanes::BestKernels();
  Find(model, kernels, kStepsThatPay);
  const std::lock_guard lock(mutex_);
  return EntryOf(model, kernels).result.refusal;
}

std::string PlanCache::RefusalUnchecked(const mjModel& model) {
  const lanes::Kernels& kernels = lanes::BestKernels();
  const std::lock_guard lock(mutex_);
  Entry& entry = EntryOf(model, kernels);
  entry.result = lanes::Plan::MakeUnchecked(model, kernels);
  entry.made = true;
  return entry.result.refusal;
}

}  // namespace pyfastenv::physics
