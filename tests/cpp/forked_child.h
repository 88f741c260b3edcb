// A forked child that does something and leaves without cleaning up.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "thread_sanitizer.h"

namespace pyfastenv::testing {

#ifdef __SANITIZE_ADDRESS__
/// Whether a thread of this process other than the calling one runs, by Linux's /proc.
inline bool OtherThreadsRun() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::any_of(begin(tasks), end(tasks), [](const auto& task) {
    if (task.path().filename() == std::to_string(gettid())) return false;
    std::ifstream file(task.path() / "stat");  // "id (name) state …"; gone if the thread has ended
    const std::string stat(std::istreambuf_iterator<char>(file), {});
    const size_t name_end = stat.rfind(") ");
    return name_end != std::string::npos && stat[name_end + 2] != 'S';
  });
}
#endif

/// Runs `child` in a forked process; false if it fails or hangs.
///
/// Under AddressSanitizer the other threads must come to sleep: what its allocator locks for a
/// thread that is just starting stays locked in the child (GCC 12), which then hangs.
template <class F>
bool InForkedChild(F child) {
#ifdef __SANITIZE_ADDRESS__
  while (OtherThreadsRun()) std::this_thread::yield();
#endif
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
