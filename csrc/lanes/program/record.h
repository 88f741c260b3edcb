// Runs the stages of a model on symbols.
#pragma once

#include "lanes/program/graph.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

/// A stage, with what other stages read of it as outputs.
Recording Record(RecordedStage stage, const Tables& t);

}  // namespace pyfastenv::lanes
