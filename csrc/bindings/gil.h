// Working without the GIL, and noticing Ctrl-C meanwhile.
#pragma once

#include <pybind11/pybind11.h>

#include <mutex>

namespace pyfastenv {

namespace py = pybind11;

/// Notes which thread runs Python's signal handlers. Once, while the module is imported: with the
/// GIL, and before any thread can ask.
void InitGil();

/// Whether Python runs this thread's signal handlers; the others need not stop for a Ctrl-C.
bool IsMainThread();

/// Runs Python's signal handlers, if this thread does that. True: one raised, and the exception is
/// set; or the interpreter has ended. Never throws.
bool PythonInterrupted();

/// Without the GIL, while it lives: everything that may wait for another thread must be, or both
/// may hang.
///
/// A daemon thread that wants the GIL back while the interpreter ends is ended by Python, which
/// before 3.14 means that its stack is unwound, through C++ frames that cannot be. Such a thread
/// stays here instead, for the moment that the process has left, as Python itself does since.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* const state_;
};

template <class F>
auto WithoutGil(F f) {
  const GilRelease release;
  return f();
}

/// The same with a lock, which may be waited for.
template <class F>
auto WithoutGil(std::mutex& mutex, F f) {
  const GilRelease release;
  const std::lock_guard lock(mutex);
  return f();
}

}  // namespace pyfastenv
