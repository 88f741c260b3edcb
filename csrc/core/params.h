// Constructor arguments of an environment, by name.
//
// An environment asks for each argument with its default; what a caller gave and no environment
// asked for is an unknown keyword. The defaults therefore stand in one place: the environment's
// file. It asks by what the argument means (a scale, a weight, a range …), and values that make no
// sense for that are refused here, in one place, whatever the environment.
#pragma once

#include <cstdint>
#include <map>
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

/// Getters throw BadParamType for the wrong type, and UsageError (kValue) for a number outside what
/// they say; both name the argument, what was expected and what was given.
class Params {
 public:
  using Value = std::variant<bool, int64_t, double, std::string, std::vector<double>>;
  using Range = std::pair<double, double>;

  Params() = default;
  explicit Params(std::map<std::string, Value> given) : given_(std::move(given)) {}

  /// Half the width of a uniform draw, or a standard deviation: >= 0, its double finite. (NumPy's
  /// uniform raises for others.)
  double GetScale(const std::string& name, double fallback) const;
  /// A factor in a formula: finite, of either sign.
  double GetWeight(const std::string& name, double fallback) const;
  /// A number that something is compared with: infinite is "never" or "always", NaN is neither.
  double GetThreshold(const std::string& name, double fallback) const;
  /// How often: a whole number from 1 to `most`.
  int GetCount(const std::string& name, int fallback, int most) const;
  /// (low, high) with low <= high; either may be infinite.
  Range GetRange(const std::string& name, Range fallback) const;
  /// True or False, or 1 or 0.
  bool GetBool(const std::string& name, bool fallback) const;
  std::string GetString(const std::string& name, const std::string& fallback) const;
  /// The value itself, for arguments of more than one type; null if not given.
  const Value* Find(const std::string& name) const;

  /// Whether a number was given as an integer (or bool): Python's results then are integers too.
  bool GivenAsInteger(const std::string& name) const;

  /// The arguments and the getters' answers: the same text for the same environment, in
  /// whatever order and number form its arguments were given, defaults among them or left out.
  std::string Identity() const;

  /// Throws UnknownParam if something was given that no getter asked for.
  void CheckAllKnown(const std::string& env_id) const;

 private:
  double GetNumber(const std::string& name, double fallback) const;
  template <class T>
  T Answer(const std::string& name, const T& value) const;

  std::map<std::string, Value> given_;
  mutable std::map<std::string, std::string> known_;  // asked for, and the answers
};

}  // namespace pyfastenv
