// Floating-point modes: scopes and loops. Pools' calls and callbacks:
// tests/python/test_float_modes.py.
#include "core/float_mode.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <mutex>
#include <set>
#include <string>

#include "core/parallel_for.h"

namespace pyfastenv {
namespace {

#if !defined(__SSE2__) && !defined(__aarch64__)
constexpr bool kKnown = false;
#else
constexpr bool kKnown = true;
#endif

// what this thread's arithmetic does, computed at run time
std::string Mode() {
  volatile float least = std::numeric_limits<float>::min();
  volatile double one = 1.0, tiny = 1e-30;
  const bool flushes = least * 0.5F == 0.0F;
  const bool rounds_up = one + tiny > 1.0;
  return std::string(flushes ? "flush" : "keep") + (rounds_up ? " up" : " nearest");
}

class FloatModes : public testing::Test {
 protected:
  void SetUp() override {
    if (!kKnown) GTEST_SKIP() << "this processor's modes are left alone";
  }
};

// flushing, and rounding up
class Odd {
 public:
  Odd() : scope_(FloatMode::OfThisThread().Flushing()) { std::fesetround(FE_UPWARD); }

 private:
  FloatScope scope_;
};

TEST_F(FloatModes, AreBackAfterAScope) {
  EXPECT_EQ(Mode(), "keep nearest");
  {
    const Odd odd;
    EXPECT_EQ(Mode(), "flush up");
    {
      const DefaultFloats outer;
      EXPECT_EQ(Mode(), "keep nearest");
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
      {
        const DefaultFloats inner;
        EXPECT_EQ(Mode(), "keep nearest");
      }
      EXPECT_EQ(Mode(), "keep nearest");
    }
    EXPECT_EQ(Mode(), "flush up");
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  }
  EXPECT_EQ(Mode(), "keep nearest");
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST_F(FloatModes, OfLoopsAreTheirCallers) {
  ParallelFor loop(3);
  const auto modes = [&] {
    std::mutex mutex;
    std::set<std::string> seen;
    loop.Run(300, [&](int, int) {
      const std::lock_guard lock(mutex);
      seen.insert(Mode());
    });
    return seen;
  };
  EXPECT_EQ(modes(), std::set<std::string>{"keep nearest"});
  {
    const Odd odd;
    EXPECT_EQ(modes(), std::set<std::string>{"flush up"});
    EXPECT_EQ(Mode(), "flush up");
  }
  EXPECT_EQ(modes(), std::set<std::string>{"keep nearest"});
}

}  // namespace
}  // namespace pyfastenv
