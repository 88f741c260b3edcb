// What an environment reads of mjData after its Simulate, besides the state and the control.
#pragma once

#include <algorithm>
#include <vector>

#include "lanes/fields.h"
#include "lanes/sensors.h"

namespace pyfastenv {

struct LaneReads {
  std::vector<lanes::Field> fields = {};
  lanes::Sensors sensors = lanes::Sensors::kNone;
  bool contacts = false;   // mjData::contact, and what mj_contactForce asks for
  bool refreshed = false;  // places and velocities are the new state's, not the last substep's

  bool Has(lanes::Field field) const {
    return std::find(fields.begin(), fields.end(), field) != fields.end();
  }
};

}  // namespace pyfastenv
