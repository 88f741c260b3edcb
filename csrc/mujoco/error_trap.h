// Calls MuJoCo so that an engine error becomes a C++ exception instead of ending the process.
//
// MuJoCo reports a fatal error to a log handler (before 3.10: an error handler) that must not
// return. During a trapped call this thread has its own handler, which jumps back here; other
// threads, and other users of MuJoCo in the process, are not touched. Warnings of trapped calls are
// not printed: divergence is read from mjData and reported as such.
//
// The trapped function may only make plain C calls: the jump runs no destructors in it. After an
// error the mjData it used must not be used again.
#pragma once

#include <mujoco/mujoco.h>

#include <csetjmp>
#include <cstdio>
#include <stdexcept>

#include "mujoco/version.h"

extern "C" {
// the thread-local forms of the handlers, which MuJoCo's own Python bindings use
#if PYFASTENV_MUJOCO >= 3010000
mjfLogHandler _mjPRIVATE_setTlsLogHandler(mjfLogHandler handler);  // NOLINT
#else
void (*_mjPRIVATE__get_tls_error_fn())(const char*);                // NOLINT
void (*_mjPRIVATE__get_tls_warning_fn())(const char*);              // NOLINT
void _mjPRIVATE__set_tls_error_fn(void (*handler)(const char*));    // NOLINT
void _mjPRIVATE__set_tls_warning_fn(void (*handler)(const char*));  // NOLINT
#endif
}

namespace pyfastenv {

/// A fatal error of the physics engine.
struct MujocoError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace internal {

/// The handlers of the engine's messages in a thread.
struct Handlers {
#if PYFASTENV_MUJOCO >= 3010000
  mjfLogHandler log;

  /// Makes them the thread's; returns those before.
  Handlers Install() const { return {_mjPRIVATE_setTlsLogHandler(log)}; }
#else
  void (*error)(const char*);
  void (*warning)(const char*);

  Handlers Install() const {
    const Handlers before{_mjPRIVATE__get_tls_error_fn(), _mjPRIVATE__get_tls_warning_fn()};
    _mjPRIVATE__set_tls_error_fn(error);
    _mjPRIVATE__set_tls_warning_fn(warning);
    return before;
  }
#endif
};

/// While it lives, this thread's fatal errors of the engine jump to `jump`. Traps nest; each puts
/// back what it found, also when an exception passes through it.
class ErrorTrap {
 public:
  ErrorTrap() : outer_(current_), outer_handlers_(kHandlers.Install()) { current_ = this; }
  ~ErrorTrap() {
    current_ = outer_;
    outer_handlers_.Install();
  }
  ErrorTrap(const ErrorTrap&) = delete;
  ErrorTrap& operator=(const ErrorTrap&) = delete;

  std::jmp_buf jump;
  char message[1024];

 private:
  static void OnError(const char* text) {
    std::snprintf(current_->message, sizeof(current_->message), "%s", text);
    std::longjmp(current_->jump, 1);
  }
#if PYFASTENV_MUJOCO >= 3010000
  static void OnLog(const mjLogMessage* log) {
    if (log->level < mjLOG_ERROR) return;
    if (log->func == nullptr) OnError(log->subject);
    char text[sizeof(message)];  // as MuJoCo's own bindings word it; a subject has 1,024 bytes
    std::snprintf(text, sizeof(text), "%s: %.1000s", log->func, log->subject);
    OnError(text);
  }
  static constexpr Handlers kHandlers{OnLog};
#else
  static void OnWarning(const char*) {}
  static constexpr Handlers kHandlers{OnError, OnWarning};
#endif

  static inline thread_local ErrorTrap* current_ = nullptr;

  ErrorTrap* const outer_;
  const Handlers outer_handlers_;
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
