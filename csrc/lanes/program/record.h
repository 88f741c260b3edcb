// Runs the stages of a model on symbols.
#pragma once

#include "lanes/program/graph.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

/// SmoothDynamics, with what later stages read of it as outputs.
Recording RecordSmoothDynamics(const Tables& t);
/// DampedAcceleration.
Recording RecordDamping(const Tables& t);

}  // namespace pyfastenv::lanes
