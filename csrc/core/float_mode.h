// How a thread computes with floating-point numbers: rounding, and whether numbers below the normal
// range count as zero.
//
// Both are the thread's own, inherited by threads that it starts, and anybody's to change
// (torch.set_flush_denormal, fesetround). An environment's numbers must depend on neither: every
// call of a pool (call_gate.h) and every job of a helper (thread_pool.h) computes in IEEE's default
// mode, and the caller gets its own back, also while its callbacks run. Learning does as its caller
// does, on every thread (parallel_for.h).
//
// What the compiler sees of a scope must not compute: it may move arithmetic out of it, but no
// calls. Nothing here is inline: who includes this may be compiled for other processors.
#pragma once

#include <cstdint>

namespace pyfastenv {

/// The thread's control registers of floating-point arithmetic: a value.
class FloatMode {
 public:
  /// As a process starts: rounding to nearest, denormal numbers kept, no exception raised.
  static FloatMode Default();
  static FloatMode OfThisThread();
  /// Also forgets which exceptions have happened since OfThisThread.
  void Set() const;

  /// The same, but that numbers below the normal range are zero.
  FloatMode Flushing() const;

 private:
#if defined(__aarch64__)
  using Register = uint64_t;
#else
  using Register = uint32_t;
#endif

  FloatMode(Register control, uint16_t old) : control_(control), old_(old) {}

  Register control_;
  // the x87's, which fesetround changes too and glibc's strtod asks; 0 elsewhere
  uint16_t old_;
};

/// While one lives, its thread computes in this mode.
class FloatScope {
 public:
  explicit FloatScope(FloatMode mode);
  ~FloatScope();
  FloatScope(const FloatScope&) = delete;
  FloatScope& operator=(const FloatScope&) = delete;

 private:
  FloatMode before_;
};

/// While one lives, its thread computes in the default mode.
class DefaultFloats {
 public:
  DefaultFloats();
  ~DefaultFloats();
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  friend class CallersFloats;
  FloatMode before_;
  DefaultFloats* const outer_;  // this thread's enclosing one
};

/// Within DefaultFloats, for callbacks into the caller's code: while one lives, its thread computes
/// as it did before the outermost of them. A mode that the callback sets is the caller's
/// afterwards.
class CallersFloats {
 public:
  CallersFloats();
  ~CallersFloats();
  CallersFloats(const CallersFloats&) = delete;
  CallersFloats& operator=(const CallersFloats&) = delete;

 private:
  FloatMode before_;
  DefaultFloats* outermost_;  // null: the mode is the caller's already
};

}  // namespace pyfastenv
