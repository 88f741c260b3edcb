#include "bindings/errors.h"

#include <pybind11/stl.h>

#include "core/params.h"

namespace pyfastenv {

namespace py = pybind11;

namespace {

py::object ErrorClass(const char* name) {
  return py::module_::import("pyfastenv.errors").attr(name);
}

void SetPythonError(const UsageError& error) {
  using Code = UsageError::Code;
  const auto set = [&](PyObject* type) { PyErr_SetString(type, error.what()); };
  switch (error.code()) {
    case Code::kValue:
      return set(PyExc_ValueError);
    case Code::kType:
      return set(PyExc_TypeError);
    case Code::kIndex:
      return set(PyExc_IndexError);
    case Code::kFileNotFound:
      return set(PyExc_FileNotFoundError);
    case Code::kClosed:
      return set(ErrorClass("ClosedError").ptr());
    case Code::kForked:
      return set(ErrorClass("ForkedError").ptr());
    case Code::kResetNeeded:
      return set(ErrorClass("ResetNeededError").ptr());
    case Code::kBusy:
      return set(ErrorClass("BusyError").ptr());
    case Code::kNothingPending:
      return set(ErrorClass("NothingPendingError").ptr());
  }
}

}  // namespace

void RegisterErrors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const UsageError& error) {
      SetPythonError(error);
    } catch (const UnknownParam& error) {
      PyErr_SetString(PyExc_TypeError, error.what());
    } catch (const BadParamType& error) {
      PyErr_SetString(PyExc_TypeError, error.what());
    }
  });
}

void ThrowEnvError(const std::vector<EnvFailure>& failures, const py::object& results,
                   const py::object& explain) {
  constexpr size_t kExplained = 4;  // as many as EnvError shows
  py::list env_ids;
  py::list messages;
  for (const auto& failure : failures) {
    env_ids.append(failure.env_id);
    if (failure.function == nullptr || explain.is_none() || messages.size() >= kExplained) {
      messages.append(failure.message);
      continue;
    }
    const FunctionFailure& function = *failure.function;
    messages.append(explain(failure.env_id, failure.message, function.function,
                            py::bytes(function.exception), function.action, function.repeatable));
  }
  const py::object type = ErrorClass("EnvError");
  const py::object error = type(env_ids, messages, results);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace pyfastenv
