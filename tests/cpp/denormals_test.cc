#include "learn/denormals.h"

#include <gtest/gtest.h>

#include <limits>

namespace pyfastenv {
namespace {

// at run time, or the compiler would compute it
float Half(float x) {
  volatile float operand = x;
  return operand * 0.5F;
}

constexpr float kLeastNormal = std::numeric_limits<float>::min();

TEST(Denormals, AreZeroWhileFlushed) {
#if !defined(__SSE2__) && !defined(__aarch64__)
  GTEST_SKIP() << "this processor's are left alone";
#endif
  EXPECT_GT(Half(kLeastNormal), 0.0F);
  {
    const FlushDenormals flush;
    EXPECT_EQ(Half(kLeastNormal), 0.0F);
    EXPECT_EQ(Half(std::numeric_limits<float>::denorm_min()), 0.0F);
    EXPECT_EQ(Half(4.0F * kLeastNormal), 2.0F * kLeastNormal);
    {
      const FlushDenormals inner;
    }
    EXPECT_EQ(Half(kLeastNormal), 0.0F) << "an inner one's end is not an outer one's";
  }
  EXPECT_GT(Half(kLeastNormal), 0.0F);
}

}  // namespace
}  // namespace pyfastenv
