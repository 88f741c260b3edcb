// Sizes of row-major arrays, and places in them.
#pragma once

#include <cstddef>

namespace pyfastenv {

/// Numbers in an array (rows, columns), or before its row `rows`.
inline size_t ArraySize(int rows, int columns) {
  return static_cast<size_t>(rows) * static_cast<size_t>(columns);
}

}  // namespace pyfastenv
