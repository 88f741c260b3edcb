#include "failing_new.h"

#include <cstdlib>
#include <new>

namespace pyfastenv::testing {

namespace {

thread_local int calls_left = -1;  // -1: never fail

}  // namespace

FailingNew::FailingNew(int n) { calls_left = n; }

FailingNew::~FailingNew() { calls_left = -1; }

static void* Allocate(std::size_t size) {
  if (calls_left == 0) {
    calls_left = -1;
    throw std::bad_alloc();
  }
  if (calls_left > 0) --calls_left;
  void* memory = std::malloc(size == 0 ? 1 : size);  // NOLINT(cppcoreguidelines-no-malloc)
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace pyfastenv::testing

// Not inlined: the compiler would see malloc meet a delete. The nothrow forms too: a sanitizer's
// own would meet our delete. NOLINTBEGIN(cppcoreguidelines-no-malloc,misc-new-delete-overloads)
[[gnu::noinline]] void* operator new(std::size_t size) {
  return pyfastenv::testing::Allocate(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size) {
  return pyfastenv::testing::Allocate(size);
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(cppcoreguidelines-no-malloc,misc-new-delete-overloads)
