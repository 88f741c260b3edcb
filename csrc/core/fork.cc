#include "core/fork.h"

#include <pthread.h>

#include <atomic>

namespace pyfastenv {

namespace {

std::atomic<unsigned> generation{0};

}  // namespace

unsigned ForkGeneration() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace pyfastenv
