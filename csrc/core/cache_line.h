// The size by which data of different threads is kept apart.
#pragma once

#include <cstddef>

namespace pyfastenv {

/// Two cache lines: processors fetch them in pairs.
inline constexpr size_t kCacheLine = 128;

}  // namespace pyfastenv
