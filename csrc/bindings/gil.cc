#include "bindings/gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "bindings/interpreter_end.h"
#include "core/float_mode.h"

namespace pyfastenv {

namespace {

using ThreadIdent = unsigned long;  // NOLINT(google-runtime-int): Python's type

// Not a function's static: its initialisation would be waited for with the GIL held.
std::atomic<ThreadIdent> main_thread{0};

void StayForever() {
  while (true) pause();
}

}  // namespace

void InitGil() {
  main_thread.store(
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<ThreadIdent>());
  // the thread that forks is the child's main thread
  pthread_atfork(nullptr, nullptr, [] { main_thread.store(PyThread_get_thread_ident()); });
}

bool IsMainThread() {
  return PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed);
}

bool PythonInterrupted() {
  if (InterpreterHasEnded()) return true;
  if (!IsMainThread()) return false;
  const py::gil_scoped_acquire gil;
  const CallersFloats floats;  // for the handlers
  return PyErr_CheckSignals() != 0;
}

GilRelease::~GilRelease() {
  if (InterpreterHasEnded()) StayForever();
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {  // pthread_exit's unwinding, not an exception: leaving this clause would abort
    StayForever();
  }
}

}  // namespace pyfastenv
