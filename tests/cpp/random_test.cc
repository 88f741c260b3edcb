// Random: halves of numbers, which stream states and copies hold. That seeds, states and numbers
// are NumPy's is seen in Python: test_parity.py, test_vector_api.py, test_task_draws.py,
// test_rollout.py.
#include "npy/random.h"

#include <gtest/gtest.h>

#include <vector>

namespace pyfastenv {
namespace {

Random Stream() { return Random(std::vector<uint32_t>{12345}); }

// printed by numpy.random.PCG64(12345): the second half waits while 64-bit numbers are drawn
TEST(Random, Uint32KeepsTheOtherHalf) {
  Random random = Stream();
  for (const uint32_t expected : {0xb2ffc19dU, 0x3a32b18dU, 0xc9e4c4deU}) {
    EXPECT_EQ(random.NextUint32(), expected);
  }
  EXPECT_EQ(random.NextUint64(), 0xcc2024823444efd9U);
  EXPECT_EQ(random.NextUint32(), 0x51171315U);
}

// a copy is a snapshot: it goes on as the original does, a pending 32-bit half included
TEST(Random, CopyIsASnapshot) {
  Random random = Stream();
  random.NextUint32();
  Random copy = random;
  EXPECT_EQ(copy.NextUint32(), random.NextUint32());
  EXPECT_EQ(copy.StandardNormal(), random.StandardNormal());
  EXPECT_EQ(copy.state_words(), random.state_words());
  EXPECT_EQ(Random::FromWords(copy.state_words()).NextUint32(), random.NextUint32());
}

}  // namespace
}  // namespace pyfastenv
