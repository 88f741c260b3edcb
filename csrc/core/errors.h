// What can go wrong at the core's edge, in terms the bindings turn into Python exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pyfastenv {

/// A message of parts, texts and numbers, one behind the other.
template <typename... Parts>
std::string Join(const Parts&... parts) {
  std::string text;
  const auto add = [&text]<typename Part>(const Part& part) {
    if constexpr (std::is_arithmetic_v<Part>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (add(parts), ...);
  return text;
}

/// The caller asked for something that cannot be done; no environment has moved.
class UsageError : public std::runtime_error {
 public:
  enum class Code {
    kValue,           // ValueError
    kType,            // TypeError
    kIndex,           // IndexError: unknown environment id
    kClosed,          // used after close
    kForked,          // used in a forked child
    kResetNeeded,     // step before reset
    kBusy,            // an environment has a request under way
    kNothingPending,  // recv with nothing sent
    kFileNotFound,    // FileNotFoundError
  };

  template <typename... Parts>
  explicit UsageError(Code code, const Parts&... parts)
      : std::runtime_error(Join(parts...)), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

/// A UsageError of the commonest kind, kValue.
template <typename... Parts>
UsageError BadValue(const Parts&... parts) {
  return UsageError(UsageError::Code::kValue, parts...);
}

/// An exception of a function that was compiled while the program ran: what it takes to explain it
/// afterwards, where a worker cannot.
struct FunctionFailure {
  std::string function;        // its name
  std::string exception;       // as its compiler encodes it
  std::vector<double> action;  // what it was called with
  bool repeatable = true;      // false: repeating it elsewhere may end the process
};

/// The exception that an environment throws for a FunctionFailure.
class FunctionError : public std::runtime_error {
 public:
  FunctionError(const std::string& message, std::shared_ptr<const FunctionFailure> failure)
      : std::runtime_error(message), failure_(std::move(failure)) {}
  const std::shared_ptr<const FunctionFailure>& failure() const { return failure_; }

 private:
  std::shared_ptr<const FunctionFailure> failure_;
};

/// An environment that raised in a worker. It keeps its state from before the call.
struct EnvFailure {
  int32_t env_id = 0;
  std::string message;
  std::shared_ptr<const FunctionFailure> function;  // null where none is to blame
};

/// "environment 3", "environments 3, 5, 8 and 12 more": for a message.
inline std::string NameEnvironments(const std::vector<int32_t>& ids) {
  constexpr size_t kShown = 8;
  std::string text = ids.size() == 1 ? "environment " : "environments ";
  for (size_t i = 0; i < ids.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(ids[i]);
  }
  if (ids.size() > kShown) {
    text += Join(" and ", ids.size() - kShown, " more");
  }
  return text;
}

}  // namespace pyfastenv
