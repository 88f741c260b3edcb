// Models' plans for lanes, kept between calls.
//
// Making a plan takes milliseconds (it is tried out), about as long as one or two thousand steps of
// mj_step. A plan is found again by the model's content, never by its address: whoever changes a
// model, or deletes it and gets another at the same place, gets another plan. The least recently
// used go.
//
// Models that differ in numbers alone, of those that environments may have their own of, share one
// plan, for which these numbers are inputs.
//
// With a plan goes what is known of it from use: whether lanes or mj_step are faster, and whether
// lanes are still believed (mujoco/lane_trust.h), which outlives the plan.
//
// Threads: any. A plan that is handed out outlives the cache's interest in it.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/engine_choice.h"
#include "lanes/plan.h"
#include "mujoco/lane_trust.h"
#include "mujoco/model_image.h"

namespace pyfastenv::physics {

/// A plan and what is known of it; all null where there is none.
struct PlanInUse {
  std::shared_ptr<const lanes::Plan> plan;
  std::shared_ptr<EngineChoice> choice;
  std::shared_ptr<LaneTrust> trust;
};

/// Models that one plan may step: they differ from the first in these numbers (bits of
/// lanes::Number) at most.
struct ModelClass {
  explicit ModelClass(const mjModel& first) : image(first) {}

  /// Whether the model is one of them.
  bool Take(const mjModel& model) {
    const std::optional<uint64_t> differences = image.Differences(model);
    numbers |= differences.value_or(0);
    return differences.has_value();
  }

  ModelImage image;  // of the first
  uint64_t numbers = 0;
};

class PlanCache {
 public:
  /// Making a plan takes about as long as so many steps of mj_step (bench/python/physics.py).
  static constexpr int64_t kStepsThatPay = 2000;

  /// A plan to run on `kernels`, for models that differ from this one in `numbers` (bits of
  /// lanes::Number), or null: lanes refuse the model, or its sensordata if that is read
  /// (`sensordata`), or `num_steps` more steps of it, with those of earlier calls, do not pay for
  /// making one. The plan has sensors if lanes do them, whoever asks.
  PlanInUse Find(const mjModel& model, const lanes::Kernels& kernels, int64_t num_steps,
                 bool sensordata, uint64_t numbers = 0);

  /// Whether mj_step was the faster way for the model that was at this address, and is to do so
  /// many group steps without another measurement. A wrong guess costs time alone; comparing the
  /// model with those known, as Find does, takes milliseconds if it has large meshes.
  bool LeavesToMujoco(const mjModel& model, int64_t group_steps);

  /// Why lanes refuse the model (or its sensordata), or are not believed any more; empty if they
  /// run it. Makes the plan.
  std::string Refusal(const mjModel& model, bool sensordata);
  /// The same without the trial, so that the model's rollouts run in lanes, never watched, even
  /// where these differ from mj_step or are slower: to find where they differ. Until Refusal is
  /// asked for again, which makes another plan.
  std::string RefusalUnchecked(const mjModel& model, bool sensordata);

  /// The reason why lanes do not step the model now, as Refusal, or because mj_step is faster in
  /// use; empty if it is lanes.
  std::string Reason(const mjModel& model, bool sensordata);

 private:
  struct Entry {
    Entry(const mjModel& model, const lanes::Kernels& on, uint64_t own);

    ModelImage image;
    const lanes::Kernels* kernels;
    uint64_t numbers;                // that environments have their own of
    std::string unsupported_sensor;  // "lanes do not do …"; empty: they do all
    int64_t num_steps = 0;           // asked for so far
    bool made = false;               // the plan, or found that there is none
    bool unchecked = false;          // made without the trial
    lanes::PlanResult result{};      // once made
    // since a plan was first asked for
    std::shared_ptr<EngineChoice> choice;
    std::shared_ptr<LaneTrust> trust;

    void Begin(const mjModel& model);
    lanes::Sensing sensing() const {
      return unsupported_sensor.empty() ? lanes::Sensing::kYes : lanes::Sensing::kNo;
    }
  };

  // the mutex is held
  Entry& EntryOf(const mjModel& model, const lanes::Kernels& kernels, uint64_t numbers = 0);

  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; the latest used first
  // where models were that mj_step steps faster; guarded by mutex_
  std::map<const mjModel*, std::shared_ptr<EngineChoice>> slow_;
};

}  // namespace pyfastenv::physics
