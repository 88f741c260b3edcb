// Plans of models for physics in lanes (csrc/lanes), made and tried out once per process.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <string>
#include <vector>

#include "lanes/plan.h"
#include "mujoco/lane_trust.h"

namespace pyfastenv {

/// The engine of the physics: lanes where they can do the model, mj_step whatever the model, or
/// lanes and an error where they cannot.
enum class Engine { kAuto, kMujoco, kLanes };

/// Whether kAuto means the faster of lanes and mj_step, as measured in use. Unless
/// PYFASTENV_MEASURE=0: then lanes wherever they can, for who tests or measures them.
bool MeasuresEngines();

/// One model's plans for each number of lanes that this processor has.
struct LanePlans {
  std::vector<std::shared_ptr<const lanes::Plan>> plans;  // the narrowest first
  std::string refusal;                                    // why there are none; empty otherwise
  std::shared_ptr<LaneTrust> trust;                       // in the model, whatever its fields
};

/// The plans of a model as Workspace::plain_model() is stepped, a header of `whole`, of whose
/// `fields` every environment has its own numbers. Any thread may ask. The first time takes a few
/// milliseconds, in which lanes and mj_step are compared; later ones look the model up by its
/// contents. None if lanes and mj_step have been seen to differ in use. Throws UsageError (kValue)
/// if PYFASTENV_LANES asks for what the processor does not have.
std::shared_ptr<const LanePlans> FindLanePlans(const mjModel& model, const mjModel& whole,
                                               const std::vector<std::string>& fields);

}  // namespace pyfastenv
