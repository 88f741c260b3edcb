// What is stopped when the interpreter has ended.
//
// Python does not wait for daemon threads. One that is in step() or recv() works on without the
// GIL, and its pool's threads with it, while exit() takes down the libraries that they compute
// with: NumPy's BLAS has no functions left then. So whoever has threads that may be at work has
// them stopped once the interpreter has ended and exit() has not begun.
#pragma once

#include <functional>

namespace pyfastenv {

/// Once, while the module is imported.
void InitInterpreterEnd();

/// Whether it has: calls under way stop as for a Ctrl-C, and nobody may want the GIL again.
bool InterpreterHasEnded();

/// While it lives: `stop` is called when the interpreter has ended, if it does. Made and destroyed
/// with the GIL, without which `stop` must return.
class StopAtInterpreterEnd {
 public:
  explicit StopAtInterpreterEnd(std::function<void()> stop);
  ~StopAtInterpreterEnd();
  StopAtInterpreterEnd(const StopAtInterpreterEnd&) = delete;
  StopAtInterpreterEnd& operator=(const StopAtInterpreterEnd&) = delete;

 private:
  const std::function<void()> stop_;
};

}  // namespace pyfastenv
