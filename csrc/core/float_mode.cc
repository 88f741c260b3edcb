#include "core/float_mode.h"

namespace pyfastenv {

namespace {

#if defined(__SSE2__)
constexpr uint32_t kDefault = 0x1F80;
constexpr uint32_t kFlush = 0x8040;  // results to zero, and operands
constexpr uint16_t kDefaultOld = 0x37F;
#elif defined(__aarch64__)
constexpr uint64_t kDefault = 0;
constexpr uint64_t kFlush = uint64_t{1} << 24;
constexpr uint16_t kDefaultOld = 0;
#else
constexpr uint32_t kDefault = 0;
constexpr uint32_t kFlush = 0;
constexpr uint16_t kDefaultOld = 0;
#endif

thread_local DefaultFloats* innermost = nullptr;

}  // namespace

FloatMode FloatMode::Default() { return FloatMode(kDefault, kDefaultOld); }

FloatMode FloatMode::Flushing() const { return FloatMode(control_ | kFlush, old_); }

FloatMode FloatMode::OfThisThread() {
#if defined(__SSE2__)
  uint16_t old = 0;  // NOLINT(misc-const-correctness): the assembly writes it
  __asm__ volatile("fnstcw %0" : "=m"(old));
  return FloatMode(__builtin_ia32_stmxcsr(), old);
#elif defined(__aarch64__)
  Register control = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return FloatMode(control, 0);
#else
  return Default();
#endif
}

void FloatMode::Set() const {
#if defined(__SSE2__)
  // writing costs ten times as much as reading
  const FloatMode now = OfThisThread();
  if (now.control_ != control_) __builtin_ia32_ldmxcsr(control_);
  if (now.old_ != old_) __asm__ volatile("fldcw %0" : : "m"(old_));
#elif defined(__aarch64__)
  if (OfThisThread().control_ != control_) __asm__ volatile("msr fpcr, %0" : : "r"(control_));
#endif
}

FloatScope::FloatScope(FloatMode mode) : before_(FloatMode::OfThisThread()) { mode.Set(); }

FloatScope::~FloatScope() { before_.Set(); }

DefaultFloats::DefaultFloats() : before_(FloatMode::OfThisThread()), outer_(innermost) {
  innermost = this;
  FloatMode::Default().Set();
}

DefaultFloats::~DefaultFloats() {
  innermost = outer_;
  before_.Set();
}

CallersFloats::CallersFloats() : before_(FloatMode::OfThisThread()), outermost_(innermost) {
  if (outermost_ == nullptr) return;
  while (outermost_->outer_ != nullptr) outermost_ = outermost_->outer_;
  outermost_->before_.Set();
}

CallersFloats::~CallersFloats() {
  if (outermost_ == nullptr) return;
  outermost_->before_ = FloatMode::OfThisThread();
  before_.Set();
}

}  // namespace pyfastenv
