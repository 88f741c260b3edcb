// NumPy's C API, in one place: fast array creation, checked array access, NumPy's own loops.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npy/dtype.h"

namespace pyfastenv {

namespace py = pybind11;

/// Imports NumPy's C API and installs its sin, cos and dot loops in npy/math.h.
void InitNumpy();

/// A new C-contiguous array and the address of its data.
struct NewArray {
  py::object array;
  void* data = nullptr;
};

enum class ArrayType { kFloat32, kFloat64, kInt32, kInt64, kUInt8, kBool };

ArrayType ToArrayType(DType dtype);

/// Uninitialised. `shape` has 1 to 3 entries.
NewArray MakeArray(std::initializer_list<int64_t> shape, ArrayType type);
NewArray MakeArray(const std::vector<int64_t>& shape, ArrayType type);
/// An object array of None.
py::object MakeNones(int64_t count);
NewArray MakeZeros(const std::vector<int64_t>& shape, ArrayType type);

/// The expectation of an argument, for an error message; called only then.
using Expected = std::function<std::string()>;

/// A caller's array, C-contiguous and aligned; `array` keeps `data` alive.
struct InputArray {
  py::object array;
  py::object given;  // the same before a conversion, for messages
  const void* data = nullptr;
  DType dtype = DType::kFloat64;
  std::vector<int64_t> shape;
};

/// Reads a batch of real numbers: float32 and float64 as they are. Throws UsageError (kType) for
/// other dtypes; `expected` says e.g. "(8, 6) float32".
InputArray ReadFloats(py::handle object, const char* name, const Expected& expected);
/// The same for float32 alone, of this shape, in which kAnySize stands for any ("n" in messages).
/// Throws UsageError (kType, kValue). `expected`: in place of the shape's own words.
InputArray ReadFloat32(py::handle object, const char* name, const std::vector<int64_t>& shape,
                       const Expected& expected = nullptr);
constexpr int64_t kAnySize = -1;
/// The numbers of a float32 array.
inline const float* Floats(const InputArray& array) {
  return static_cast<const float*>(array.data);
}
/// Reads actions of a Box: float32 and float64 as they are, float16 as float32, integers and bools
/// as float64. gymnasium computes with the dtype it is given, so the dtype counts: NumPy's
/// arithmetic of a float with integers is float64, that with float16 we do not have.
InputArray ReadActionValues(py::handle object, const char* name, const Expected& expected);
/// Reads integers of any width as int64.
InputArray ReadIntegers(py::handle object, const char* name, const Expected& expected);
/// Reads a uint8 array.
InputArray ReadBytes(py::handle object, const char* name, const Expected& expected);
/// Reads real numbers of any kind as float64.
InputArray ReadNumbers(py::handle object, const char* name);

int64_t NumElements(const std::vector<int64_t>& shape);

/// Whether `n` elements of a float32 or float64 array, from `begin` on, are neither NaN nor
/// infinite.
bool AllFinite(const InputArray& input, int64_t begin, int64_t n);

/// The address of a caller's array that is to be written: C-contiguous, aligned and writeable, of
/// exactly this type and shape. Throws UsageError (kType, kValue).
void* OutputData(const py::object& object, const char* name, const std::vector<int64_t>& shape,
                 ArrayType type);

/// The same of a float32 array.
inline float* OutputFloats(const py::object& object, const char* name,
                           const std::vector<int64_t>& shape) {
  return static_cast<float*>(OutputData(object, name, shape, ArrayType::kFloat32));
}

/// "(8, 5) float64", for messages.
std::string Describe(py::handle array);
std::string Describe(const std::vector<int64_t>& shape);

/// NumPy's loops for float64 that the core itself does not call, as `void f(const double* x,
/// int64_t x_step, double* y, int64_t n)`, with steps in bytes; of two arguments as `void f(x,
/// x_step, w, w_step, y, n)`; "matmul" as `void f(a, b, y, rows, inner, columns)` for contiguous
/// arrays.
std::vector<std::pair<std::string, const void*>> NumpyLoops();

}  // namespace pyfastenv
