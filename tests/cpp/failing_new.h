// Memory that runs out when a test says so.
#pragma once

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

}  // namespace pyfastenv::testing
