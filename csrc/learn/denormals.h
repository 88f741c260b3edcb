// Numbers below a float's normal range, as zero.
//
// Adam's moments of weights whose gradients have ended fade into that range, where Intel's
// processors compute about a hundred times slower. For learning only: physics keeps such numbers.
#pragma once

#include "core/float_mode.h"

namespace pyfastenv {

/// While one lives, its thread takes them for zero.
class FlushDenormals : public FloatScope {
 public:
  FlushDenormals() : FloatScope(FloatMode::OfThisThread().Flushing()) {}
};

}  // namespace pyfastenv
