// NumPy's scalar arithmetic, where it differs from C++'s.
//
// gymnasium mixes np.float32 (actions), np.float64 (physics) and Python floats (parameters).
// Since NEP 50 a Python float is *weak*: it takes the type of the NumPy scalar beside it, so
// `0.1 * np.float32(x)` is computed in float32. Environments whose results depend on this write
// their formulas with NumpyScalar and read like the Python they reproduce.
#pragma once

#include <math.h>  // ::powf: std::pow(float, float) is a builtin that becomes x * x

namespace pyfastenv {

class NumpyScalar {
 public:
  enum class Kind { kPythonFloat, kFloat32, kFloat64 };

  // a plain C++ number plays the part of a Python float
  constexpr NumpyScalar(double value) : value_(value), kind_(Kind::kPythonFloat) {}  // NOLINT
  static NumpyScalar Float32(double value) {
    return {static_cast<double>(static_cast<float>(value)), Kind::kFloat32};
  }
  static constexpr NumpyScalar Float64(double value) { return {value, Kind::kFloat64}; }

  double value() const { return value_; }
  bool is_float32() const { return kind_ == Kind::kFloat32; }

  friend NumpyScalar operator+(NumpyScalar a, NumpyScalar b) {
    const Kind kind = Promote(a, b);
    return Round(In(a, kind) + In(b, kind), kind);
  }
  friend NumpyScalar operator-(NumpyScalar a, NumpyScalar b) {
    const Kind kind = Promote(a, b);
    return Round(In(a, kind) - In(b, kind), kind);
  }
  friend NumpyScalar operator*(NumpyScalar a, NumpyScalar b) {
    const Kind kind = Promote(a, b);
    return Round(In(a, kind) * In(b, kind), kind);
  }
  friend NumpyScalar operator-(NumpyScalar a) { return {-a.value_, a.kind_}; }
  friend bool operator<(NumpyScalar a, NumpyScalar b) {
    const Kind kind = Promote(a, b);
    return In(a, kind) < In(b, kind);
  }
  friend bool operator>(NumpyScalar a, NumpyScalar b) { return b < a; }
  friend bool operator>=(NumpyScalar a, NumpyScalar b) {
    const Kind kind = Promote(a, b);
    return In(a, kind) >= In(b, kind);
  }
  friend bool operator==(NumpyScalar a, NumpyScalar b) {
    const Kind kind = Promote(a, b);
    return In(a, kind) == In(b, kind);
  }

  /// `x ** 2`: NumPy's scalars call the C library's pow, which may differ from x * x in the last
  /// bit.
  NumpyScalar Squared() const {
    if (kind_ == Kind::kFloat32) return {::powf(static_cast<float>(value_), 2.0F), kind_};
    return {::pow(value_, 2.0), kind_};
  }

 private:
  constexpr NumpyScalar(double value, Kind kind) : value_(value), kind_(kind) {}

  static Kind Promote(NumpyScalar a, NumpyScalar b) {
    return a.kind_ > b.kind_ ? a.kind_ : b.kind_;
  }
  static double In(NumpyScalar x, Kind kind) {
    return kind == Kind::kFloat32 ? static_cast<double>(static_cast<float>(x.value_)) : x.value_;
  }
  // rounding a double sum, difference or product of two floats to float equals computing in float
  static NumpyScalar Round(double value, Kind kind) {
    return kind == Kind::kFloat32 ? Float32(value) : NumpyScalar(value, kind);
  }

  double value_;
  Kind kind_;
};

}  // namespace pyfastenv
