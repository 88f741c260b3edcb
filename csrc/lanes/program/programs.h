// Straight-line code for one model in place of stages: the stages are recorded on symbols, and what
// is left once the model's constants are folded in is compiled to vector instructions.
#pragma once

#include <array>

#include "lanes/kernels.h"
#include "lanes/program/code.h"
#include "lanes/tables.h"

namespace pyfastenv::lanes {

class Programs {
 public:
  /// Makes the programs of a model and enters them in its tables. There are none for one or two
  /// lanes, on processors other than x86-64, where the system forbids it, or if
  /// PYFASTENV_LANE_PROGRAMS is 0.
  void Make(Tables& tables, const Kernels& kernels);

 private:
  static constexpr int kCount = static_cast<int>(RecordedStage::kCount);

  std::array<Code, kCount> code_;
  std::array<Program, kCount> entries_{};
};

}  // namespace pyfastenv::lanes
