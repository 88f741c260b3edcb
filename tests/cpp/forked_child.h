// A forked child that does something and leaves without cleaning up.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "thread_sanitizer.h"

namespace pyfastenv::testing {

/// Runs `child` in a forked process; false if it fails or hangs.
template <class F>
bool InForkedChild(F child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(child() ? 0 : 1);
  for (int i = 0; i < 6'000; ++i) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return false;
}

}  // namespace pyfastenv::testing
