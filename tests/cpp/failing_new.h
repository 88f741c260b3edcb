// Memory that runs out when a test says so.
#pragma once

#include <new>

namespace pyfastenv::testing {

/// While it lives, this thread's `n`-th call of operator new from now on (0: the next) throws
/// std::bad_alloc.
class FailingNew {
 public:
  explicit FailingNew(int n);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
};

/// Calls `call` with ever more memory until it succeeds, and `after_failure` after each bad_alloc;
/// returns how many there were.
template <class Call, class AfterFailure>
int WithEverMoreMemory(Call call, AfterFailure after_failure) {
  for (int n = 0;; ++n) {
    bool failed = false;
    try {
      const FailingNew failing(n);
      call();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    if (!failed || n > 1000) return n;
    after_failure();
  }
}

}  // namespace pyfastenv::testing
