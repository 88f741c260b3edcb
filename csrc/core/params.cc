#include "core/params.h"

#include <cmath>
#include <sstream>

#include "core/errors.h"

namespace pyfastenv {

namespace {

std::string Text(double number) {
  std::ostringstream text;
  text.precision(17);
  text << number;
  return text.str();
}

std::string Text(bool flag) { return flag ? "1" : "0"; }
// quoted: a text cannot be taken for a number
std::string Text(const std::string& text) { return '"' + text + '"'; }
std::string Text(const Params::Range& range) {
  return '(' + Text(range.first) + ", " + Text(range.second) + ')';
}

struct ValueText {
  std::string operator()(int64_t number) const { return Text(static_cast<double>(number)); }
  std::string operator()(const std::vector<double>& numbers) const {
    std::string text;
    for (const double number : numbers) text += Text(number) + ' ';
    return text;
  }
  template <class T>
  std::string operator()(const T& value) const {
    return Text(value);
  }
};

[[noreturn]] void Refuse(const std::string& name, const char* expected, const std::string& got) {
  throw BadValue(name, ": expected ", expected, ", got ", got);
}

}  // namespace

const Params::Value* Params::Find(const std::string& name) const {
  const auto it = given_.find(name);
  const bool given = it != given_.end();
  known_.emplace(name, given ? std::visit(ValueText(), it->second) : "");
  return given ? &it->second : nullptr;
}

template <class T>
T Params::Answer(const std::string& name, const T& value) const {
  known_[name] = Text(value);
  return value;
}

std::string Params::Identity() const {
  std::string text;
  for (const auto& [name, value] : known_) text += name + '=' + value + ';';
  return text;
}

double Params::GetNumber(const std::string& name, double fallback) const {
  const Value* value = Find(name);
  if (value == nullptr) return fallback;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1.0 : 0.0;
  throw BadParamType(name + ": expected a number");
}

double Params::GetScale(const std::string& name, double fallback) const {
  const double scale = GetNumber(name, fallback);
  if (!(scale >= 0.0 && std::isfinite(2.0 * scale))) {
    Refuse(name, "a finite number >= 0", Text(scale));
  }
  return Answer(name, scale);
}

double Params::GetWeight(const std::string& name, double fallback) const {
  const double weight = GetNumber(name, fallback);
  if (!std::isfinite(weight)) Refuse(name, "a finite number", Text(weight));
  return Answer(name, weight);
}

double Params::GetThreshold(const std::string& name, double fallback) const {
  const double threshold = GetNumber(name, fallback);
  if (std::isnan(threshold)) Refuse(name, "a number", Text(threshold));
  return Answer(name, threshold);
}

int Params::GetCount(const std::string& name, int fallback, int most) const {
  const double count = GetNumber(name, fallback);
  if (!(count >= 1.0 && count <= most) || count != std::floor(count)) {
    Refuse(name, ("a positive integer up to " + std::to_string(most)).c_str(), Text(count));
  }
  return static_cast<int>(Answer(name, count));
}

bool Params::GivenAsInteger(const std::string& name) const {
  const Value* value = Find(name);
  return value != nullptr &&
         (std::holds_alternative<int64_t>(*value) || std::holds_alternative<bool>(*value));
}

bool Params::GetBool(const std::string& name, bool fallback) const {
  const Value* value = Find(name);
  if (value == nullptr) return Answer(name, fallback);
  if (std::holds_alternative<std::string>(*value) ||
      std::holds_alternative<std::vector<double>>(*value)) {
    throw BadParamType(name + ": expected a bool");
  }
  const double number = GetNumber(name, 0.0);
  if (number != 0.0 && number != 1.0) Refuse(name, "True or False", Text(number));
  return Answer(name, number == 1.0);
}

std::string Params::GetString(const std::string& name, const std::string& fallback) const {
  const Value* value = Find(name);
  if (value == nullptr) return Answer(name, fallback);
  if (const auto* text = std::get_if<std::string>(value)) return Answer(name, *text);
  throw BadParamType(name + ": expected a string");
}

Params::Range Params::GetRange(const std::string& name, Range fallback) const {
  const Value* value = Find(name);
  if (value == nullptr) return Answer(name, fallback);
  const auto* numbers = std::get_if<std::vector<double>>(value);
  if (numbers == nullptr || numbers->size() != 2) {
    throw BadParamType(name + ": expected a pair of numbers (low, high)");
  }
  const Range range{(*numbers)[0], (*numbers)[1]};
  if (!(range.first <= range.second)) {
    Refuse(name, "(low, high) with low <= high",
           "(" + Text(range.first) + ", " + Text(range.second) + ")");
  }
  return Answer(name, range);
}

void Params::CheckAllKnown(const std::string& env_id) const {
  for (const auto& [name, value] : given_) {
    if (known_.count(name) != 0) continue;
    std::string message = env_id + " got an unexpected keyword argument '" + name + "'; it takes";
    const char* separator = " ";
    for (const auto& [known, answer] : known_) {
      message += separator + known;
      separator = ", ";
    }
    throw UnknownParam(message);
  }
}

}  // namespace pyfastenv
