// The process's plans of models for lanes.
#pragma once

#include "physics/plan_cache.h"

namespace pyfastenv {

/// One cache for the process. A forked child gets another, since a thread of the parent may have
/// been in it. With the GIL.
physics::PlanCache& Plans();

}  // namespace pyfastenv
