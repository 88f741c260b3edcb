// Constructor arguments of an environment, by name.
//
// An environment asks for each argument with its default; what a caller gave and no environment
// asked for is an unknown keyword. The defaults therefore stand in one place: the environment's
// file.
#pragma once

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyfastenv {

/// An argument that no environment of this kind takes (a Python TypeError).
struct UnknownParam : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An argument of the wrong type (a Python TypeError).
struct BadParamType : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Params {
 public:
  using Value = std::variant<bool, double, std::string, std::vector<double>>;
  using Range = std::pair<double, double>;

  Params() = default;
  explicit Params(std::map<std::string, Value> given) : given_(std::move(given)) {}

  double Get(const std::string& name, double fallback) const;
  bool GetBool(const std::string& name, bool fallback) const;
  std::string GetString(const std::string& name, const std::string& fallback) const;
  Range GetRange(const std::string& name, Range fallback) const;
  /// The value itself, for arguments of more than one type; null if not given.
  const Value* Find(const std::string& name) const;

  /// Throws UnknownParam if something was given that no Get asked for.
  void CheckAllKnown(const std::string& env_id) const;

 private:
  std::map<std::string, Value> given_;
  mutable std::set<std::string> known_;
};

}  // namespace pyfastenv
