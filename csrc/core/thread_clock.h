// Time that a thread has computed: what others do on the same machine does not count.
#pragma once

#include <cstdint>
#include <ctime>

namespace pyfastenv {

/// Nanoseconds of processor time of the calling thread. A system call, some 300 ns.
inline int64_t ThreadNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace pyfastenv
