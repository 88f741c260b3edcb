#include "core/params.h"

namespace pyfastenv {

const Params::Value* Params::Find(const std::string& name) const {
  known_.insert(name);
  const auto it = given_.find(name);
  return it == given_.end() ? nullptr : &it->second;
}

double Params::Get(const std::string& name, double fallback) const {
  const Value* value = Find(name);
  if (value == nullptr) return fallback;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1.0 : 0.0;
  throw BadParamType(name + ": expected a number");
}

bool Params::GetBool(const std::string& name, bool fallback) const {
  const Value* value = Find(name);
  if (value == nullptr) return fallback;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  if (const auto* number = std::get_if<double>(value)) return *number != 0.0;
  throw BadParamType(name + ": expected a bool");
}

std::string Params::GetString(const std::string& name, const std::string& fallback) const {
  const Value* value = Find(name);
  if (value == nullptr) return fallback;
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  throw BadParamType(name + ": expected a string");
}

Params::Range Params::GetRange(const std::string& name, Range fallback) const {
  const Value* value = Find(name);
  if (value == nullptr) return fallback;
  const auto* numbers = std::get_if<std::vector<double>>(value);
  if (numbers == nullptr || numbers->size() != 2) {
    throw BadParamType(name + ": expected a pair of numbers (low, high)");
  }
  return {(*numbers)[0], (*numbers)[1]};
}

void Params::CheckAllKnown(const std::string& env_id) const {
  for (const auto& [name, value] : given_) {
    if (known_.count(name) != 0) continue;
    std::string message = env_id + " got an unexpected keyword argument '" + name + "'; it takes";
    const char* separator = " ";
    for (const auto& known : known_) {
      message += separator + known;
      separator = ", ";
    }
    throw UnknownParam(message);
  }
}

}  // namespace pyfastenv
