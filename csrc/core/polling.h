// How often calls that wait look whether they should stop.
#pragma once

#include <chrono>

namespace pyfastenv {

// far below the 0.2 s that a Ctrl-C may take
inline constexpr auto kPollInterval = std::chrono::milliseconds(20);
// waiters spin this long before they sleep, unless they know better
inline constexpr std::chrono::nanoseconds kSpin = std::chrono::microseconds(50);

}  // namespace pyfastenv
