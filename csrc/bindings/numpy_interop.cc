#include "bindings/numpy_interop.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/errors.h"
#include "npy/math.h"

namespace pyfastenv {

namespace {

using Code = UsageError::Code;

// A ufunc's inner loop for one element. NumPy's float loops need no GIL.
struct Loop {
  PyUFuncGenericFunction function = nullptr;
  void* data = nullptr;

  template <class T>
  T operator()(T x) const {
    T y;
    char* args[] = {reinterpret_cast<char*>(&x), reinterpret_cast<char*>(&y)};
    const npy_intp count = 1;
    const npy_intp strides[] = {sizeof(T), sizeof(T)};
    function(args, &count, strides, data);
    return y;
  }
};

Loop sin_f64, cos_f64, sin_f32, cos_f32;
PyArray_DotFunc* dot_f64 = nullptr;

Loop FindLoop(const py::module_& numpy, const char* name, int type) {
  const py::object object = numpy.attr(name);
  const auto* ufunc = reinterpret_cast<PyUFuncObject*>(object.ptr());
  for (int i = 0; i < ufunc->ntypes; ++i) {
    const char* types = ufunc->types + static_cast<ptrdiff_t>(i) * ufunc->nargs;
    if (types[0] == type && types[1] == type) {
      return {ufunc->functions[i],
              ufunc->data == nullptr ? nullptr : const_cast<void*>(ufunc->data[i])};
    }
  }
  throw py::import_error(std::string("pyfastenv: numpy.") + name + " has no loop for this dtype");
}

// ---- float64 loops by name, for compiled tasks ----

constexpr const char* kUnary[] = {"sin",   "cos",  "tan",     "arcsin",  "arccos",  "arctan",
                                  "sinh",  "cosh", "tanh",    "arcsinh", "arccosh", "arctanh",
                                  "exp",   "exp2", "expm1",   "log",     "log2",    "log10",
                                  "log1p", "cbrt", "degrees", "radians", "rint"};
constexpr const char* kBinary[] = {"arctan2", "hypot", "power", "fmod", "remainder"};
Loop unary[std::size(kUnary)];
Loop binary[std::size(kBinary)];
Loop matmul;

template <size_t K>
void CallUnary(const double* x, int64_t x_step, double* y, int64_t n) {
  char* args[] = {reinterpret_cast<char*>(const_cast<double*>(x)), reinterpret_cast<char*>(y)};
  const npy_intp count = n;
  const npy_intp steps[] = {x_step, sizeof(double)};
  unary[K].function(args, &count, steps, unary[K].data);
}

template <size_t K>
void CallBinary(const double* x, int64_t x_step, const double* w, int64_t w_step, double* y,
                int64_t n) {
  char* args[] = {reinterpret_cast<char*>(const_cast<double*>(x)),
                  reinterpret_cast<char*>(const_cast<double*>(w)), reinterpret_cast<char*>(y)};
  const npy_intp count = n;
  const npy_intp steps[] = {x_step, w_step, sizeof(double)};
  binary[K].function(args, &count, steps, binary[K].data);
}

// the generalised ufunc's loop over one pair: (rows, inner) @ (inner, columns)
void CallMatmul(const double* a, const double* b, double* y, int64_t rows, int64_t inner,
                int64_t columns) {
  char* args[] = {reinterpret_cast<char*>(const_cast<double*>(a)),
                  reinterpret_cast<char*>(const_cast<double*>(b)), reinterpret_cast<char*>(y)};
  const npy_intp sizes[] = {1, rows, inner, columns};
  constexpr npy_intp kItem = sizeof(double);
  const npy_intp steps[] = {
      0, 0, 0, inner * kItem, kItem, columns * kItem, kItem, columns * kItem, kItem};
  matmul.function(args, sizes, steps, matmul.data);
}

int ImportNumpy() {
  import_array1(-1);
  import_umath1(-1);
  return 0;
}

int TypeNumber(ArrayType type) {
  switch (type) {
    case ArrayType::kFloat32:
      return NPY_FLOAT32;
    case ArrayType::kFloat64:
      return NPY_FLOAT64;
    case ArrayType::kInt32:
      return NPY_INT32;
    case ArrayType::kInt64:
      return NPY_INT64;
    case ArrayType::kUInt8:
      return NPY_UINT8;
    case ArrayType::kBool:
      return NPY_BOOL;
  }
  return NPY_FLOAT64;
}

NewArray Wrap(PyObject* array) {
  if (array == nullptr) throw py::error_already_set();
  return {py::reinterpret_steal<py::object>(array),
          PyArray_DATA(reinterpret_cast<PyArrayObject*>(array))};
}

PyArrayObject* AsArray(const py::object& object) {
  return reinterpret_cast<PyArrayObject*>(object.ptr());
}

// any array-like, as an array of whatever dtype it has
py::object ToArray(py::handle object, const char* name) {
  if (PyArray_Check(object.ptr())) return py::reinterpret_borrow<py::object>(object);
  PyObject* array = PyArray_FROM_O(object.ptr());
  if (array == nullptr) {
    const py::error_already_set why;
    throw UsageError(Code::kType, name, ": expected an array, got ",
                     std::string(py::str(py::type::handle_of(object))), " (",
                     std::string(py::str(why.value())), ")");
  }
  return py::reinterpret_steal<py::object>(array);
}

InputArray Convert(const py::object& array, int type, DType dtype, int flags = 0) {
  PyObject* converted =
      PyArray_FROM_OTF(array.ptr(), type, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED | flags);
  if (converted == nullptr) throw py::error_already_set();
  InputArray input;
  input.given = array;
  input.array = py::reinterpret_steal<py::object>(converted);
  auto* a = AsArray(input.array);
  input.data = PyArray_DATA(a);
  input.dtype = dtype;
  input.shape.assign(PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a));
  return input;
}

[[noreturn]] void ThrowType(const char* name, const std::string& expected,
                            const py::object& array) {
  throw UsageError(Code::kType, name, ": expected ", expected, ", got ", Describe(array));
}

// The sum of x * 0 is 0 unless an x is NaN or infinite; the compiler vectorises it.
template <class T>
bool ProductsAreZero(const T* x, int64_t n) {
  constexpr int kLanes = 8;
  T sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) sums[k] += x[i + k] * T(0);
  }
  for (; i < n; ++i) sums[0] += x[i] * T(0);
  T sum = 0;
  for (const T s : sums) sum += s;
  return sum == T(0);
}

}  // namespace

void InitNumpy() {
  if (ImportNumpy() < 0) throw py::error_already_set();
  const auto numpy = py::module_::import("numpy");
  sin_f64 = FindLoop(numpy, "sin", NPY_DOUBLE);
  cos_f64 = FindLoop(numpy, "cos", NPY_DOUBLE);
  sin_f32 = FindLoop(numpy, "sin", NPY_FLOAT);
  cos_f32 = FindLoop(numpy, "cos", NPY_FLOAT);
  PyArray_Descr* descr = PyArray_DescrFromType(NPY_DOUBLE);
  dot_f64 = PyDataType_GetArrFuncs(descr)->dotfunc;
  Py_DECREF(descr);

  npy::MathTable& math = npy::Math();
  math.sin = [](double x) { return sin_f64(x); };
  math.cos = [](double x) { return cos_f64(x); };
  math.sinf = [](float x) { return sin_f32(x); };
  math.cosf = [](float x) { return cos_f32(x); };
  math.dot = [](const double* a, const double* b, int n) {
    double result = 0.0;
    dot_f64(const_cast<double*>(a), sizeof(double), const_cast<double*>(b), sizeof(double), &result,
            n, nullptr);
    return result;
  };
}

ArrayType ToArrayType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ArrayType::kFloat32;
    case DType::kFloat64:
      return ArrayType::kFloat64;
    case DType::kInt64:
      return ArrayType::kInt64;
  }
  return ArrayType::kFloat64;
}

NewArray MakeArray(std::initializer_list<int64_t> shape, ArrayType type) {
  npy_intp dims[3];
  std::copy(shape.begin(), shape.end(), dims);
  return Wrap(PyArray_SimpleNew(static_cast<int>(shape.size()), dims, TypeNumber(type)));
}

NewArray MakeArray(const std::vector<int64_t>& shape, ArrayType type) {
  const std::vector<npy_intp> dims(shape.begin(), shape.end());
  return Wrap(PyArray_SimpleNew(static_cast<int>(dims.size()), const_cast<npy_intp*>(dims.data()),
                                TypeNumber(type)));
}

py::object MakeNones(int64_t count) {
  const npy_intp dims[] = {count};
  // a new object array holds null pointers, which NumPy reads as None
  NewArray array = Wrap(PyArray_SimpleNew(1, const_cast<npy_intp*>(dims), NPY_OBJECT));
  auto** items = static_cast<PyObject**>(array.data);
  for (int64_t i = 0; i < count; ++i) {
    Py_INCREF(Py_None);
    PyObject* old = items[i];
    items[i] = Py_None;
    Py_XDECREF(old);
  }
  return array.array;
}

NewArray MakeZeros(const std::vector<int64_t>& shape, ArrayType type) {
  const std::vector<npy_intp> dims(shape.begin(), shape.end());
  return Wrap(PyArray_ZEROS(static_cast<int>(dims.size()), const_cast<npy_intp*>(dims.data()),
                            TypeNumber(type), 0));
}

InputArray ReadFloats(py::handle object, const char* name, const Expected& expected) {
  const py::object array = ToArray(object, name);
  const int type = PyArray_TYPE(AsArray(array));
  if (type == NPY_FLOAT32) return Convert(array, NPY_FLOAT32, DType::kFloat32);
  if (type == NPY_FLOAT64) return Convert(array, NPY_FLOAT64, DType::kFloat64);
  ThrowType(name, expected(), array);
}

InputArray ReadFloat32(py::handle object, const char* name, const std::vector<int64_t>& shape,
                       const Expected& expected) {
  const auto words = [&] { return expected ? expected() : Describe(shape) + " float32"; };
  InputArray input = ReadFloats(object, name, words);
  const auto fits = [](int64_t given, int64_t wanted) {
    return wanted == kAnySize || given == wanted;
  };
  if (input.dtype != DType::kFloat32 ||
      !std::equal(input.shape.begin(), input.shape.end(), shape.begin(), shape.end(), fits)) {
    throw BadValue(name, ": expected ", words(), ", got ", Describe(input.array));
  }
  return input;
}

InputArray ReadActionValues(py::handle object, const char* name, const Expected& expected) {
  const py::object array = ToArray(object, name);
  auto* a = AsArray(array);
  if (PyArray_TYPE(a) == NPY_FLOAT32 || PyArray_TYPE(a) == NPY_FLOAT16) {
    return Convert(array, NPY_FLOAT32, DType::kFloat32);
  }
  if (PyArray_TYPE(a) == NPY_FLOAT64 || PyArray_ISINTEGER(a) || PyArray_ISBOOL(a)) {
    // uint64 and int64 too: what float64 cannot hold exactly is beyond every action
    return Convert(array, NPY_FLOAT64, DType::kFloat64, NPY_ARRAY_FORCECAST);
  }
  ThrowType(name, expected(), array);
}

InputArray ReadIntegers(py::handle object, const char* name, const Expected& expected) {
  const py::object array = ToArray(object, name);
  auto* a = AsArray(array);
  if (!PyArray_ISINTEGER(a) && PyArray_SIZE(a) != 0) ThrowType(name, expected(), array);
  // uint64 too: what does not fit turns negative, which no id and no action is
  return Convert(array, NPY_INT64, DType::kInt64, NPY_ARRAY_FORCECAST);
}

InputArray ReadBytes(py::handle object, const char* name, const Expected& expected) {
  const py::object array = ToArray(object, name);
  if (PyArray_TYPE(AsArray(array)) != NPY_UINT8) ThrowType(name, expected(), array);
  return Convert(array, NPY_UINT8, DType::kInt64);  // the dtype is not used
}

InputArray ReadNumbers(py::handle object, const char* name) {
  const py::object array = ToArray(object, name);
  auto* a = AsArray(array);
  if (!PyArray_ISFLOAT(a) && !PyArray_ISINTEGER(a)) ThrowType(name, "real numbers", array);
  return Convert(array, NPY_FLOAT64, DType::kFloat64);
}

std::string Describe(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (const int64_t size : shape) {
    text += (text.size() == 1 ? "" : ", ") + (size == kAnySize ? "n" : std::to_string(size));
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return count;
}

bool AllFinite(const InputArray& input, int64_t begin, int64_t n) {
  return input.dtype == DType::kFloat32
             ? ProductsAreZero(static_cast<const float*>(input.data) + begin, n)
             : ProductsAreZero(static_cast<const double*>(input.data) + begin, n);
}

void* OutputData(const py::object& object, const char* name, const std::vector<int64_t>& shape,
                 ArrayType type) {
  const auto fail = [&](const std::string& got) {
    const PyArray_Descr* descr = PyArray_DescrFromType(TypeNumber(type));
    const py::object wanted = py::reinterpret_steal<py::object>(
        reinterpret_cast<PyObject*>(const_cast<PyArray_Descr*>(descr)));
    throw BadValue(name, ": expected a writeable C-contiguous ", Describe(shape), " ",
                   std::string(py::str(wanted)), " array, got ", got);
  };
  if (!PyArray_Check(object.ptr())) fail(std::string(py::str(py::type::handle_of(object))));
  PyArrayObject* array = AsArray(object);
  const std::vector<int64_t> got(PyArray_DIMS(array), PyArray_DIMS(array) + PyArray_NDIM(array));
  if (PyArray_TYPE(array) != TypeNumber(type) || got != shape) fail(Describe(object));
  if (!PyArray_ISCARRAY(array)) fail(Describe(object) + ", read-only or not contiguous");
  return PyArray_DATA(array);
}

std::string Describe(py::handle array) {
  auto* a = reinterpret_cast<PyArrayObject*>(array.ptr());
  const std::vector<int64_t> shape(PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a));
  return Describe(shape) + " " + std::string(py::str(array.attr("dtype")));
}

std::vector<std::pair<std::string, const void*>> NumpyLoops() {
  static std::vector<std::pair<std::string, const void*>> known;
  if (!known.empty()) return known;  // workers may be calling what the loops point at
  const py::module_ numpy = py::module_::import("numpy");
  std::vector<std::pair<std::string, const void*>> loops;
  [&]<size_t... K>(std::index_sequence<K...>) {
    ((unary[K] = FindLoop(numpy, kUnary[K], NPY_DOUBLE),
      loops.emplace_back(kUnary[K], reinterpret_cast<const void*>(&CallUnary<K>))),
     ...);
  }(std::make_index_sequence<std::size(kUnary)>());
  [&]<size_t... K>(std::index_sequence<K...>) {
    ((binary[K] = FindLoop(numpy, kBinary[K], NPY_DOUBLE),
      loops.emplace_back(kBinary[K], reinterpret_cast<const void*>(&CallBinary<K>))),
     ...);
  }(std::make_index_sequence<std::size(kBinary)>());
  matmul = FindLoop(numpy, "matmul", NPY_DOUBLE);
  loops.emplace_back("matmul", reinterpret_cast<const void*>(&CallMatmul));
  known = std::move(loops);
  return known;
}

}  // namespace pyfastenv
