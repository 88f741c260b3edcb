// Models' plans for lanes, kept between calls.
//
// Making a plan takes milliseconds (it is tried out), about as long as one or two thousand steps of
// mj_step. A plan is found again by the model's content, never by its address: whoever changes a
// model, or deletes it and gets another at the same place, gets another plan. The least recently
// used go.
//
// Threads: any. A plan that is handed out outlives the cache's interest in it.
#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "lanes/plan.h"
#include "physics/model_image.h"

namespace pyfastenv::physics {

class PlanCache {
 public:
  /// A plan to run on `kernels`, or null: lanes refuse the model, or `num_steps` more steps of it,
  /// with those of earlier calls, do not pay for making one.
  std::shared_ptr<const lanes::Plan> Find(const mjModel& model, const lanes::Kernels& kernels,
                                          int64_t num_steps);

  /// Why lanes refuse the model; empty if they do not. Makes the plan.
  std::string Refusal(const mjModel& model);
  /// The same without the trial, so that the model's rollouts run in lanes even where they differ
  /// from mj_step: to find where they do.
  std::string RefusalUnchecked(const mjModel& model);

 private:
  struct Entry {
    Entry(const mjModel& model, const lanes::Kernels& on) : image(model), kernels(&on) {}

    ModelImage image;
    const lanes::Kernels* kernels;
    int64_t num_steps = 0;       // asked for so far
    bool made = false;           // the plan, or found that there is none
    lanes::PlanResult result{};  // once made
  };

  Entry& EntryOf(const mjModel& model, const lanes::Kernels& kernels);  // the mutex is held

  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; the latest used first
};

}  // namespace pyfastenv::physics
