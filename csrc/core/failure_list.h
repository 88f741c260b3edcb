// What the environments that raised had to say, gathered from many workers.
//
// Adding never throws: where there is no memory for a message, only the message is lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"

namespace pyfastenv {

class FailureList {
 public:
  /// From within a catch clause: the exception being handled is environment `id`'s.
  void AddCurrentException(int32_t id) noexcept {
    untaken_.fetch_add(1, std::memory_order_release);
    try {
      try {
        throw;
      } catch (const FunctionError& error) {
        Add({id, error.what(), error.failure()});
      } catch (const std::exception& error) {
        Add({id, error.what(), nullptr});
      } catch (...) {
        Add({id, "unknown exception", nullptr});
      }
    } catch (...) {
      return;  // no memory: Take says so
    }
  }

  /// Puts back what Take returned.
  void PutBack(const std::vector<EnvFailure>& failures) noexcept {
    untaken_.fetch_add(static_cast<int64_t>(failures.size()), std::memory_order_release);
    try {
      for (const auto& failure : failures) Add(failure);
    } catch (...) {
      return;  // as above
    }
  }

  /// Whether there is anything to take; true for whoever has seen the end of an
  /// AddCurrentException.
  bool any() const { return untaken_.load(std::memory_order_acquire) > 0; }

  /// Removes and returns the failures of these environments, in their order. Each has been added.
  std::vector<EnvFailure> Take(std::span<const int32_t> ids) {
    std::vector<EnvFailure> failures;
    failures.reserve(ids.size());
    const std::lock_guard lock(mutex_);
    for (const int32_t id : ids) {
      const auto found = failures_.find(id);
      failures.push_back(found != failures_.end() ? found->second
                                                  : EnvFailure{id, "out of memory", nullptr});
    }
    // nothing can throw from here on
    for (const int32_t id : ids) failures_.erase(id);
    untaken_.fetch_sub(static_cast<int64_t>(ids.size()), std::memory_order_relaxed);
    return failures;
  }

  /// Removes and returns all of them, by id, once nobody adds any more. Throws std::bad_alloc if
  /// there was no memory for one's message.
  std::vector<EnvFailure> TakeAll() {
    const std::lock_guard lock(mutex_);
    if (untaken_.load() != static_cast<int64_t>(failures_.size())) throw std::bad_alloc();
    std::vector<EnvFailure> failures;
    for (const auto& [id, failure] : failures_) failures.push_back(failure);
    failures_.clear();
    untaken_.store(0);
    return failures;
  }

 private:
  void Add(const EnvFailure& failure) {
    const std::lock_guard lock(mutex_);
    failures_[failure.env_id] = failure;
  }

  std::atomic<int64_t> untaken_{0};  // counts those without a message too
  std::mutex mutex_;
  std::map<int32_t, EnvFailure> failures_;  // guarded by mutex_
};

}  // namespace pyfastenv
