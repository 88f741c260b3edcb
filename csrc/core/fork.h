// Whether this process is a forked child of the one in which something was made.
#pragma once

#include <atomic>
#include <memory>

namespace pyfastenv {

/// Changes in a forked child: what was made under another generation has lost its threads.
unsigned ForkGeneration();

/// This process's T. A forked child gets another, since a thread of the parent may have been in it.
/// Never deleted: threads may outlive the module.
template <class T>
T& OfThisProcess() {
  struct Made {
    unsigned generation = ForkGeneration();
    T value;
  };
  static std::atomic<Made*> made{new Made};
  Made* found = made.load();
  if (found->generation != ForkGeneration()) {
    auto fresh = std::make_unique<Made>();
    if (made.compare_exchange_strong(found, fresh.get())) found = fresh.release();
  }
  return found->value;
}

}  // namespace pyfastenv
