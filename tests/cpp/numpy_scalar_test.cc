// NumpyScalar and the pieces of numpy_math.h that need no Python. Literals are NumPy 2.4.6's.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/action.h"
#include "npy/math.h"
#include "npy/scalar.h"

namespace pyfastenv {
namespace {

NumpyScalar F32(double value) { return NumpyScalar::Float32(value); }
NumpyScalar F64(double value) { return NumpyScalar::Float64(value); }

void ExpectFloat32(NumpyScalar x, double value) {
  EXPECT_TRUE(x.is_float32());
  EXPECT_EQ(x.value(), value);
}
void ExpectDouble(NumpyScalar x, double value) {
  EXPECT_FALSE(x.is_float32());
  EXPECT_EQ(x.value(), value);
}

// NEP 50: beside a float32 a Python float is rounded to float32 first
TEST(NumpyScalar, PythonFloatsAreWeak) {
  ExpectFloat32(0.1 * F32(0.1), 0x1.47ae16p-7);
  ExpectFloat32(F32(0.1) + 0.2, 0x1.333334p-2);
  ExpectFloat32(1.0 - F32(0.1), 0x1.ccccccp-1);
  ExpectFloat32(F32(0.3) * F32(0.1), 0x1.eb852p-6);
}

TEST(NumpyScalar, Float64Wins) {
  ExpectDouble(F64(0.1) * F32(0.1), 0x1.47ae14ccccccdp-7);
  ExpectDouble(F32(0.1) - F64(0.3), -0x1.9999996666666p-3);
  ExpectDouble(F64(static_cast<float>(0.1)) + 0.2, 0x1.3333334cccccdp-2);
}

// two Python floats stay Python floats: a float32 later takes the sum, not each of them
TEST(NumpyScalar, PythonFloatsStayWeak) {
  const NumpyScalar sum = NumpyScalar(0.1) + 0.2;
  ExpectDouble(sum, 0.1 + 0.2);
  ExpectFloat32(sum + F32(0.0), static_cast<float>(0.1 + 0.2));
}

TEST(NumpyScalar, Comparisons) {
  EXPECT_TRUE(F32(0.1) == 0.1);  // 0.1 is rounded to float32
  EXPECT_TRUE(F32(0.1) >= 0.1);
  EXPECT_FALSE(F32(0.1) < 0.1);
  EXPECT_FALSE(F64(static_cast<float>(0.1)) == 0.1);
  EXPECT_TRUE(F64(static_cast<float>(0.1)) > 0.1);
  EXPECT_TRUE(F32(0.1) > F64(0.1));  // compared in float64
  const NumpyScalar nan = F64(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(nan < 0.0 || nan > 0.0 || nan >= 0.0 || nan == nan);
}

TEST(NumpyScalar, NegationAndSquareKeepTheType) {
  ExpectFloat32(-F32(0.1), -static_cast<double>(static_cast<float>(0.1)));
  ExpectFloat32(F32(1.1).Squared(), 0x1.35c29p+0);
  ExpectDouble(F64(0.1).Squared(), 0x1.47ae147ae147cp-7);
}

// the operations round once: a double result of two floats, rounded, is the float result
TEST(NumpyScalar, Float32ArithmeticIsTheProcessors) {
  float a = 0.37F;
  for (int i = 1; i < 500; ++i) {
    const float b = 1.0F / static_cast<float>(i) - 0.01F * static_cast<float>(i);
    EXPECT_EQ((F32(a) + F32(b)).value(), static_cast<double>(a + b));
    EXPECT_EQ((F32(a) - F32(b)).value(), static_cast<double>(a - b));
    EXPECT_EQ((F32(a) * F32(b)).value(), static_cast<double>(a * b));
    a = 0.7F * a + b;
  }
}

TEST(NumpyMath, ClipPassesNanThrough) {
  EXPECT_EQ(npy::Clip(2.0, -1.0, 1.0), 1.0);
  EXPECT_EQ(npy::Clip(-2.0, -1.0, 1.0), -1.0);
  EXPECT_EQ(npy::Clip(0.5, -1.0, 1.0), 0.5);
  EXPECT_TRUE(std::isnan(npy::Clip(std::numeric_limits<double>::quiet_NaN(), -1.0, 1.0)));
}

// np.float64(a) % b has the sign of b
TEST(NumpyMath, Remainder) {
  EXPECT_EQ(npy::Remainder(-1.0, 3.0), 2.0);
  EXPECT_EQ(npy::Remainder(1.0, -3.0), -2.0);
  EXPECT_EQ(npy::Remainder(7.5, 2.0), 1.5);
  EXPECT_TRUE(std::signbit(npy::Remainder(4.0, -2.0)));
  EXPECT_FALSE(std::signbit(npy::Remainder(-4.0, 2.0)));
}

// every length is summed completely, in whatever order
TEST(NumpyMath, PairwiseSumCountsEveryItem) {
  for (const ptrdiff_t n : {0, 1, 7, 8, 9, 127, 128, 129, 1000}) {
    const auto item = [](ptrdiff_t i) { return static_cast<double>(i); };
    EXPECT_EQ(npy::PairwiseSum<double>(item, 0, n), static_cast<double>(n * (n - 1) / 2)) << n;
  }
}

// np.sum([1e16, 1, …, 1]) of 8: the ones are added in pairs, so all seven survive but the first
TEST(NumpyMath, PairwiseSumOrder) {
  const std::vector<double> x = {1e16, 1, 1, 1, 1, 1, 1, 1};
  const double expected = ((1e16 + 1) + (1.0 + 1)) + ((1.0 + 1) + (1.0 + 1));
  const auto item = [&](ptrdiff_t i) { return x[static_cast<size_t>(i)]; };
  EXPECT_EQ(npy::PairwiseSum<double>(item, 0, 8), expected);
}

// a sum of squares is computed in the action's dtype
TEST(Action, SumOfSquaresIsOfTheActionsType) {
  const float f32[] = {0.1F, 0.2F, 0.3F};
  const double f64[] = {0.1, 0.2, 0.3};
  const Action narrow(f32, DType::kFloat32, 3);
  const Action wide(f64, DType::kFloat64, 3);
  ExpectFloat32(narrow.SumOfSquares(), 0.1F * 0.1F + 0.2F * 0.2F + 0.3F * 0.3F);
  ExpectDouble(wide.SumOfSquares(), 0.1 * 0.1 + 0.2 * 0.2 + 0.3 * 0.3);
  EXPECT_TRUE(narrow[1].is_float32());
  EXPECT_EQ(wide[1].value(), 0.2);
}

}  // namespace
}  // namespace pyfastenv
