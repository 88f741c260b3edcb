#include "core/call_gate.h"

#include <string>

#include "core/errors.h"
#include "core/fork.h"

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

thread_local const CallGate::Pass* innermost = nullptr;

}  // namespace

CallGate::CallGate(const char* object) : object_(object), fork_generation_(ForkGeneration()) {}

bool CallGate::forked() const { return fork_generation_ != ForkGeneration(); }

bool CallGate::InsideOnThisThread() const {
  for (const Pass* pass = innermost; pass != nullptr; pass = pass->outer_) {
    if (&pass->gate_ == this) return true;
  }
  return false;
}

CallGate::Pass::Pass(CallGate& gate) : gate_(gate), outer_(innermost) {
  if (gate.forked()) {
    throw UsageError(Code::kForked, "this ", gate.object_,
                     " was created before fork(); its threads do not exist in the child "
                     "process: create it in the child instead");
  }
  if (gate.InsideOnThisThread()) {
    throw UsageError(Code::kBusy,
                     "called from a signal handler while this thread is inside another "
                     "call of the same ",
                     gate.object_);
  }
  gate.calls_.fetch_add(1);
  if (gate.closed_.load()) {
    if (gate.calls_.fetch_sub(1) == 1) gate.calls_.notify_all();
    throw UsageError(Code::kClosed, "the ", gate.object_, " is closed");
  }
  innermost = this;
}

CallGate::Pass::~Pass() {
  innermost = outer_;
  if (gate_.calls_.fetch_sub(1) == 1 && gate_.closed_.load()) gate_.calls_.notify_all();
}

void CallGate::Close(const std::function<void()>& wake, const std::function<void()>& finish) {
  if (forked()) {
    closed_.store(true);
    return;
  }
  if (InsideOnThisThread()) {
    throw UsageError(Code::kBusy,
                     "close() was called from a signal handler while this thread is "
                     "inside another call of the same ",
                     object_);
  }
  closed_.store(true);
  wake();
  for (int calls = calls_.load(); calls != 0; calls = calls_.load()) calls_.wait(calls);
  const std::lock_guard lock(closing_);
  if (!finished_) finish();
  finished_ = true;
}

}  // namespace pyfastenv
