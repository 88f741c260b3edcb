// Calls MuJoCo so that an engine error becomes a C++ exception instead of ending the process.
//
// MuJoCo reports a fatal error to a log handler that must not return. During a trapped call this
// thread has its own handler, which jumps back here; other threads, and other users of MuJoCo in
// the process, are not touched. Warnings of trapped calls are not printed: divergence is read from
// mjData and reported as such.
//
// The trapped function may only make plain C calls: the jump runs no destructors in it. After an
// error the mjData it used must not be used again.
#pragma once

#include <mujoco/mujoco.h>

#include <csetjmp>
#include <cstdio>
#include <stdexcept>

extern "C" {
// the thread-local form of mju_setLogHandler, which MuJoCo's own Python bindings use
mjfLogHandler _mjPRIVATE_setTlsLogHandler(mjfLogHandler handler);  // NOLINT
}

namespace pyfastenv {

/// A fatal error of the physics engine.
struct MujocoError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace internal {

/// While it lives, this thread's fatal errors of the engine jump to `jump`. Traps nest; each puts
/// back what it found, also when an exception passes through it.
class ErrorTrap {
 public:
  ErrorTrap() : outer_(current_), outer_handler_(_mjPRIVATE_setTlsLogHandler(OnLog)) {
    current_ = this;
  }
  ~ErrorTrap() {
    current_ = outer_;
    _mjPRIVATE_setTlsLogHandler(outer_handler_);
  }
  ErrorTrap(const ErrorTrap&) = delete;
  ErrorTrap& operator=(const ErrorTrap&) = delete;

  std::jmp_buf jump;
  char message[1024];

 private:
  static void OnLog(const mjLogMessage* log) {
    if (log->level < mjLOG_ERROR) return;
    std::snprintf(current_->message, sizeof(current_->message), "%s", log->subject);
    std::longjmp(current_->jump, 1);
  }

  static inline thread_local ErrorTrap* current_ = nullptr;

  ErrorTrap* const outer_;
  const mjfLogHandler outer_handler_;
};

// Not inlined: no variable of f may live in the frame that is jumped back to.
template <class F>
[[gnu::noinline]] void Call(F& f) {
  f();
}

}  // namespace internal

/// Calls f(), plain C; throws MujocoError if the engine raised an error in it.
template <class F>
void Trapped(F f) {
  internal::ErrorTrap trap;
  if (setjmp(trap.jump) != 0) throw MujocoError(trap.message);  // NOLINT(cert-err52-cpp)
  internal::Call(f);
}

}  // namespace pyfastenv
