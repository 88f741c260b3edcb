// What the environments that raised had to say, gathered from many workers.
//
// Adding never throws: where there is no memory for a message, only the message is lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"

namespace pyfastenv {

class FailureList {
 public:
  /// From within a catch clause: the exception being handled is environment `id`'s.
  void AddCurrentException(int32_t id) noexcept {
    any_.store(true, std::memory_order_release);
    try {
      try {
        throw;
      } catch (const std::exception& error) {
        Add(id, error.what());
      } catch (...) {
        Add(id, "unknown exception");
      }
    } catch (...) {
      return;  // no memory: Take says so
    }
  }

  /// Puts back what Take returned.
  void PutBack(const std::vector<EnvFailure>& failures) noexcept {
    any_.store(true, std::memory_order_release);
    try {
      for (const auto& failure : failures) Add(failure.env_id, failure.message.c_str());
    } catch (...) {
      return;  // as above
    }
  }

  /// Whether anything was added since it was last empty; acquire.
  bool any() const { return any_.load(std::memory_order_acquire); }

  /// Removes and returns the failures of these environments, in their order.
  std::vector<EnvFailure> Take(std::span<const int32_t> ids) {
    std::vector<EnvFailure> failures;
    failures.reserve(ids.size());
    const std::lock_guard lock(mutex_);
    for (const int32_t id : ids) {
      const auto found = messages_.find(id);
      failures.push_back({id, found != messages_.end() ? found->second : "out of memory"});
    }
    // nothing can throw from here on
    for (const int32_t id : ids) messages_.erase(id);
    if (messages_.empty()) any_.store(false, std::memory_order_relaxed);
    return failures;
  }

 private:
  void Add(int32_t id, const char* message) {
    const std::lock_guard lock(mutex_);
    messages_[id] = message;
  }

  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::map<int32_t, std::string> messages_;  // guarded by mutex_
};

}  // namespace pyfastenv
