// Keyword arguments read by name into an options struct.
//
// For constructors with many options: nothing is positional on either side, and a wrong type, a
// missing or an unknown name is a TypeError that names it.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <set>
#include <string>

#include "core/errors.h"

namespace pyfastenv {

namespace py = pybind11;

class Keywords {
 public:
  /// `callee` is for messages.
  Keywords(const char* callee, const py::kwargs& given) : callee_(callee), given_(given) {}

  template <class T>
  void Read(const char* name, T& value) {
    known_.insert(name);
    if (!given_.contains(name)) Refuse(std::string("missing the argument '") + name + "'");
    const py::object object = given_[name];
    try {
      value = object.cast<T>();
    } catch (const py::cast_error&) {
      Refuse(std::string(name) + ": got an unfit " + Py_TYPE(object.ptr())->tp_name);
    }
  }

  /// To be called after the last Read.
  void CheckAllRead() const {
    for (const auto& [name, value] : given_) {
      const auto text = name.cast<std::string>();
      if (known_.count(text) == 0) Refuse("unexpected argument '" + text + "'");
    }
  }

 private:
  [[noreturn]] void Refuse(const std::string& what) const {
    throw UsageError(UsageError::Code::kType, callee_, ": ", what);
  }

  const char* callee_;
  const py::kwargs& given_;
  std::set<std::string> known_;
};

}  // namespace pyfastenv
