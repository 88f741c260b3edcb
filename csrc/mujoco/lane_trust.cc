#include "mujoco/lane_trust.h"

#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "core/fork.h"
#include "mujoco/model_image.h"

namespace pyfastenv {

namespace {

// Beyond so many models, those that nobody uses any more are forgotten, unless trust was broken.
constexpr size_t kManyModels = 1024;

const std::string& Unsaid() {
  static const std::string& text = *new std::string(
      "lanes and mj_step differ on this machine, and there was no memory to say where");
  return text;
}

std::atomic<int64_t> broken_count{0};
std::atomic<bool> disturbed{false};

struct Registry {
  std::mutex mutex;
  std::map<std::pair<size_t, size_t>, std::shared_ptr<LaneTrust>> models;  // by size and hash
};

}  // namespace

LaneTrust::~LaneTrust() {
  const std::string* text = difference_.load();
  if (text != &Unsaid()) delete text;
}

std::string LaneTrust::difference() const {
  const std::string* text = difference_.load(std::memory_order_acquire);
  return text != nullptr ? *text : std::string();
}

void LaneTrust::Break(std::string difference) noexcept {
  if (broken()) return;
  std::unique_ptr<const std::string> text;
  try {
    if (!difference.empty()) text = std::make_unique<const std::string>(std::move(difference));
  } catch (const std::bad_alloc&) {
    text = nullptr;
  }
  const std::string* none = nullptr;
  const std::string* said = text != nullptr ? text.get() : &Unsaid();
  if (!difference_.compare_exchange_strong(none, said, std::memory_order_acq_rel)) return;
  static_cast<void>(text.release());
  broken_count.fetch_add(1, std::memory_order_release);  // pairs with CountBrokenTrust
}

std::shared_ptr<LaneTrust> FindLaneTrust(const mjModel& model) {
  const ModelImage image(model);
  const std::pair<size_t, size_t> key(image.size(), image.Hash());
  auto& registry = OfThisProcess<Registry>();
  const std::lock_guard lock(registry.mutex);
  auto& models = registry.models;
  if (models.size() >= kManyModels) {
    std::erase_if(models, [](const auto& known) {
      return known.second.use_count() == 1 && !known.second->broken();
    });
  }
  std::shared_ptr<LaneTrust>& trust = models[key];
  if (trust == nullptr) trust = std::make_shared<LaneTrust>();
  return trust;
}

int64_t CountBrokenTrust() { return broken_count.load(std::memory_order_acquire); }

std::vector<std::string> TakeBrokenTrust() {
  auto& registry = OfThisProcess<Registry>();
  const std::lock_guard lock(registry.mutex);
  std::vector<std::string> news;
  for (const auto& [_, trust] : registry.models) {
    if (trust->broken() && !trust->told_.exchange(true)) news.push_back(trust->difference());
  }
  return news;
}

void DisturbLanes(bool on) { disturbed.store(on, std::memory_order_relaxed); }

void DisturbIfAsked(double& result) {
  if (disturbed.load(std::memory_order_relaxed)) result = std::nextafter(result, 1e9);
}

}  // namespace pyfastenv
