// Calls MuJoCo so that an engine error becomes a C++ exception instead of ending the process.
//
// MuJoCo reports a fatal error to a log handler that must not return. During a trapped call this
// thread has its own handler, which jumps back here; other threads, and other users of MuJoCo in
// the process, are not touched. Warnings of trapped calls are not printed: divergence is read from
// mjData and reported as such.
//
// The trapped function may only make plain C calls: the jump runs no destructors. After an error
// the mjData it used must not be used again.
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

struct ErrorTrap {
  std::jmp_buf jump;
  char message[1024];
};

inline thread_local ErrorTrap* error_trap = nullptr;

inline void OnLog(const mjLogMessage* log) {
  if (log->level < mjLOG_ERROR) return;
  std::snprintf(error_trap->message, sizeof(error_trap->message), "%s", log->subject);
  std::longjmp(error_trap->jump, 1);
}

}  // namespace internal

template <class F>
void Trapped(F f) {
  internal::ErrorTrap trap;
  internal::ErrorTrap* const outer_trap = internal::error_trap;
  const mjfLogHandler outer_handler = _mjPRIVATE_setTlsLogHandler(internal::OnLog);
  internal::error_trap = &trap;
  const bool failed = setjmp(trap.jump) != 0;  // NOLINT
  if (!failed) f();
  internal::error_trap = outer_trap;
  _mjPRIVATE_setTlsLogHandler(outer_handler);
  if (failed) throw MujocoError(trap.message);
}

}  // namespace pyfastenv
