// From a recording to machine code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanes/program/graph.h"

namespace pyfastenv::lanes {

struct CompiledCode {
  std::vector<uint8_t> bytes;
  int num_spills = 0;  // vectors that the code keeps in ProgramArray::spill
  int num_operations = 0;
};

/// `lanes`: 8 or 4; `offsets`: of each ProgramArray in the block, in bytes.
CompiledCode Compile(const Recording& recording, int lanes, const std::vector<size_t>& offsets);

}  // namespace pyfastenv::lanes
