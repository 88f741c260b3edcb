// Working without the GIL, and noticing Ctrl-C meanwhile.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

namespace pyfastenv {

namespace py = pybind11;

/// Whether Python runs this thread's signal handlers; the others need not stop for a Ctrl-C.
inline bool IsMainThread() {
  // kept alive with the interpreter: the main thread does not change
  static const unsigned long main_thread =  // NOLINT(google-runtime-int): Python's type
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  return PyThread_get_thread_ident() == main_thread;
}

inline bool Interrupted() {
  if (!IsMainThread()) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

/// Runs f without the GIL: everything that may wait for another thread must, or both may hang.
template <class F>
auto WithoutGil(F f) {
  class Release {
   public:
    Release() : main_(IsMainThread()), state_(PyEval_SaveThread()) {}
    ~Release() {
      // A daemon thread that comes back while the interpreter ends would be unwound by it, through
      // C++ frames, which aborts the process: it stays here instead, as newer Pythons do.
      while (!main_ && IsFinalizing()) std::this_thread::sleep_for(std::chrono::seconds(1));
      PyEval_RestoreThread(state_);
    }
    Release(const Release&) = delete;
    Release& operator=(const Release&) = delete;

   private:
    static bool IsFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
      return Py_IsFinalizing() != 0;
#else
      return _Py_IsFinalizing() != 0;
#endif
    }
    const bool main_;
    PyThreadState* const state_;
  };
  const Release release;
  return f();
}

}  // namespace pyfastenv
