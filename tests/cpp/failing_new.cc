#include "failing_new.h"

#include <cstdlib>
#include <new>

namespace pyfastenv::testing {

namespace {

thread_local int calls_left = -1;  // -1: never fail
thread_local bool failed = false;

}  // namespace

FailingNew::FailingNew(int n) {
  calls_left = n;
  failed = false;
}

FailingNew::~FailingNew() { calls_left = -1; }

bool FailingNew::Failed() { return failed; }

static void* Allocate(std::size_t size) {
  if (calls_left == 0) {
    failed = true;
    calls_left = -1;
    throw std::bad_alloc();
  }
  if (calls_left > 0) --calls_left;
  void* memory = std::malloc(size == 0 ? 1 : size);  // NOLINT(cppcoreguidelines-no-malloc)
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace pyfastenv::testing

void* operator new(std::size_t size) { return pyfastenv::testing::Allocate(size); }
void* operator new[](std::size_t size) { return pyfastenv::testing::Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }                 // NOLINT
void operator delete[](void* memory) noexcept { std::free(memory); }               // NOLINT
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }    // NOLINT
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }  // NOLINT
