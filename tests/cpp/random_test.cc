// Random: the numbers NumPy gives. The literals were printed by NumPy 2.4.6:
//   seed = numpy.random.SeedSequence(n); bits = numpy.random.PCG64(seed)
//   generator = numpy.random.Generator(bits)
#include "npy/random.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyfastenv {
namespace {

struct Expected {
  const char* seed;
  std::vector<uint32_t> entropy;       // little-endian words of the seed
  std::array<uint64_t, 4> seed_state;  // SeedSequence(seed).generate_state(4, np.uint64)
  std::array<uint64_t, 4> state;       // bits.state["state"]: high and low of state, inc
  std::array<uint64_t, 3> raw;         // bits.random_raw()
  std::array<uint32_t, 3> raw32;       // next_uint32, then one next_uint64 and next_uint32:
  uint64_t after_raw32;
  uint32_t last_raw32;
  std::array<double, 2> doubles;  // generator.random()
  std::array<double, 3> uniform;  // generator.uniform(-0.1, 0.3)
  std::array<double, 3> normal;   // generator.standard_normal()
  double normal_4000;             // the 4000th, past the ziggurat's rare branches
  double after_normal_4000;       // generator.random() then
};

const std::vector<Expected>& Cases() {
  static const std::vector<Expected> cases = {
      {"12345",
       {12345},
       {0xb5ae6482a03d837cU, 0xbbe2996ffa1f7a2fU, 0x64e39a9f37158f94U, 0x3ebb0f96a013fd73U},
       {0x1905e0335aae9634U, 0x9199b0d09775add5U, 0xc9c7353e6e2b1f28U, 0x7d761f2d4027fae7U},
       {0x3a32b18db2ffc19dU, 0x51171315c9e4c4deU, 0xcc2024823444efd9U},
       {0xb2ffc19dU, 0x3a32b18dU, 0xc9e4c4deU},
       0xcc2024823444efd9U,
       0x51171315U,
       {0x1.d1958c6d97fe0p-3, 0x1.445c4c5727930p-2},
       {-0x1.290fb075ccd98p-7, 0x1.b581e89430798p-6, 0x1.c066db3a40dc9p-3},
       {-0x1.6c7fcc2ecc744p+0, 0x1.4383b54eb0649p+0, -0x1.bdc76014d359ep-1},
       -0x1.537209c0b2214p-1,
       0x1.b4d7632b4356ep-1},
      {"2**70 + 3",
       {3, 0, 64},
       {0x449916e45e0b88e4U, 0xa7cf3269996cf1c2U, 0x9f822a5f2c111b5eU, 0x70f529c350d24d0cU},
       {0xc4dd53ca36b715f5U, 0x8d34a46de147be20U, 0x3f0454be582236bcU, 0xe1ea5386a1a49a19U},
       {0x6b9e7d80244da682U, 0x492f04c2452ccfddU, 0x1b34b70f0a2ac141U},
       {0x244da682U, 0x6b9e7d80U, 0x452ccfddU},
       0x1b34b70f0a2ac141U,
       0x492f04c2U,
       {0x1.ae79f60091368p-2, 0x1.24bc130914b32p-2},
       {0x1.1729899a81f0ep-4, 0x1.d63426daa28e8p-7, -0x1.d6f6d8d917767p-5},
       {0x1.1ff4336134469p-1, -0x1.59984c7c1f259p-1, -0x1.e05da765deaacp-1},
       -0x1.f385f5f6023d8p-1,
       0x1.3bc482541f1a4p-3},
  };
  return cases;
}

class RandomTest : public ::testing::TestWithParam<Expected> {};

TEST_P(RandomTest, SeedState) { EXPECT_EQ(SeedState(GetParam().entropy), GetParam().seed_state); }

TEST_P(RandomTest, StateWords) {
  const auto& [state_high, state_low, increment_high, increment_low] = GetParam().state;
  const std::array<uint64_t, 6> expected = {state_high, state_low, increment_high, increment_low};
  EXPECT_EQ(Random(GetParam().entropy).state_words(), expected);
}

TEST_P(RandomTest, Uint64) {
  Random random(GetParam().entropy);
  for (const uint64_t expected : GetParam().raw) EXPECT_EQ(random.NextUint64(), expected);
}

// 32-bit numbers are halves; the second half waits while 64-bit numbers are drawn
TEST_P(RandomTest, Uint32KeepsTheOtherHalf) {
  Random random(GetParam().entropy);
  for (const uint32_t expected : GetParam().raw32) EXPECT_EQ(random.NextUint32(), expected);
  EXPECT_EQ(random.NextUint64(), GetParam().after_raw32);
  EXPECT_EQ(random.NextUint32(), GetParam().last_raw32);
}

TEST_P(RandomTest, Doubles) {
  Random random(GetParam().entropy);
  for (const double expected : GetParam().doubles) EXPECT_EQ(random.NextDouble(), expected);
}

TEST_P(RandomTest, Uniform) {
  Random random(GetParam().entropy);
  for (const double expected : GetParam().uniform) EXPECT_EQ(random.Uniform(-0.1, 0.3), expected);
}

TEST_P(RandomTest, StandardNormal) {
  Random random(GetParam().entropy);
  for (const double expected : GetParam().normal) EXPECT_EQ(random.StandardNormal(), expected);
  for (int i = 3; i < 3999; ++i) random.StandardNormal();
  EXPECT_EQ(random.StandardNormal(), GetParam().normal_4000);
  EXPECT_EQ(random.NextDouble(), GetParam().after_normal_4000);
}

// a copy is a snapshot: it goes on as the original does, a pending 32-bit half included
TEST_P(RandomTest, CopyIsASnapshot) {
  Random random(GetParam().entropy);
  random.NextUint32();
  Random copy = random;
  EXPECT_EQ(copy.NextUint32(), random.NextUint32());
  EXPECT_EQ(copy.StandardNormal(), random.StandardNormal());
  EXPECT_EQ(copy.state_words(), random.state_words());
}

// numpy.random.Generator(PCG64(SeedSequence(12345))): small ranges draw 32 bits, of which a half
// waits
TEST(RandomIntegers, AreNumpys) {
  Random random(std::vector<uint32_t>{12345});
  EXPECT_EQ(random.Integers(0, 1000), 699);
  EXPECT_EQ(random.Integers(0, 7), 1);
  EXPECT_EQ(random.Integers(-5, 5), 2);
  EXPECT_EQ(random.Integers(0, int64_t{1} << 40), 876712591924);
  EXPECT_EQ(random.NextDouble(), 0x1.5a3e0d5d490ddp-1);
  EXPECT_EQ(random.Integers(0, 3), 0);
  EXPECT_EQ(random.Integers(3, 4), 3);
  EXPECT_EQ(random.state_words()[4], 0U);
  EXPECT_EQ(random.state_words()[5], 1360466709U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

void PrintTo(const Expected& expected, std::ostream* out) { *out << "seed " << expected.seed; }

// SeedSequence pads with zeros: leading zero words of a short seed change nothing
TEST(Random, EntropyOfUpToFourWordsIsPadded) {
  const uint32_t one[] = {12345};
  const uint32_t four[] = {12345, 0, 0, 0};
  const uint32_t five[] = {12345, 0, 0, 0, 0};
  EXPECT_EQ(SeedState(one), SeedState(four));
  EXPECT_NE(SeedState(one), SeedState(five));
}

}  // namespace
}  // namespace pyfastenv
