// Models' plans for lanes, kept between calls.
//
// Making a plan takes milliseconds (it is tried out), about as long as one or two thousand steps of
// mj_step. A plan is found again by the model's content, never by its address: whoever changes a
// model, or deletes it and gets another at the same place, gets another plan. The least recently
// used go.
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

class PlanCache {
 public:
  /// A plan to run on `kernels`, or null: lanes refuse the model, or `num_steps` more steps of it,
  /// with those of earlier calls, do not pay for making one.
  PlanInUse Find(const mjModel& model, const lanes::Kernels& kernels, int64_t num_steps);

  /// Whether mj_step was the faster way for the model that was at this address, and is to do so
  /// many group steps without another measurement. A wrong guess costs time alone; comparing the
  /// model with those known, as Find does, takes milliseconds if it has large meshes.
  bool LeavesToMujoco(const mjModel& model, int64_t group_steps);

  /// Why lanes refuse the model, or are not believed any more; empty if they run it. Makes the
  /// plan.
  std::string Refusal(const mjModel& model);
  /// The same without the trial, so that the model's rollouts run in lanes, never watched, even
  /// where these differ from mj_step or are slower: to find where they differ. Until Refusal is
  /// asked for again, which makes another plan.
  std::string RefusalUnchecked(const mjModel& model);

  /// The reason why lanes do not step the model now, as Refusal, or because mj_step is faster in
  /// use; empty if it is lanes.
  std::string Reason(const mjModel& model);

 private:
  struct Entry {
    Entry(const mjModel& model, const lanes::Kernels& on) : image(model), kernels(&on) {}

    ModelImage image;
    const lanes::Kernels* kernels;
    int64_t num_steps = 0;       // asked for so far
    bool made = false;           // the plan, or found that there is none
    bool unchecked = false;      // made without the trial
    lanes::PlanResult result{};  // once made
    // since a plan was first asked for
    std::shared_ptr<EngineChoice> choice;
    std::shared_ptr<LaneTrust> trust;

    void Begin(const mjModel& model);
  };

  Entry& EntryOf(const mjModel& model, const lanes::Kernels& kernels);  // the mutex is held

  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; the latest used first
  // where models were that mj_step steps faster; guarded by mutex_
  std::map<const mjModel*, std::shared_ptr<EngineChoice>> slow_;
};

}  // namespace pyfastenv::physics
