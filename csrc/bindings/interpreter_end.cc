#include "bindings/interpreter_end.h"

#include <Python.h>

#include <atomic>
#include <set>
#include <utility>

namespace pyfastenv {

namespace {

std::atomic<bool> ended{false};

// Read and written with the GIL, and at the end, when nobody can have it. Never destroyed: what is
// in it may outlive every static.
std::set<const std::function<void()>*>& Stops() {
  static auto* const stops = new std::set<const std::function<void()>*>;
  return *stops;
}

void StopAll() {
  ended.store(true);
  for (const std::function<void()>* stop : Stops()) (*stop)();
}

}  // namespace

void InitInterpreterEnd() {
  // no room among its 32 functions: then threads work on, as Python's own do
  (void)Py_AtExit(StopAll);
}

bool InterpreterHasEnded() { return ended.load(std::memory_order_relaxed); }

StopAtInterpreterEnd::StopAtInterpreterEnd(std::function<void()> stop) : stop_(std::move(stop)) {
  Stops().insert(&stop_);
}

StopAtInterpreterEnd::~StopAtInterpreterEnd() { Stops().erase(&stop_); }

}  // namespace pyfastenv
