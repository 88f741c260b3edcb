#include "npy/random.h"

#include <numpy/random/bitgen.h>

#include <bit>
#include <vector>

// from NumPy's static library libnpyrandom (numpy/random/distributions.h, which needs Python.h)
extern "C" {
double random_uniform(bitgen_t* bitgen, double low, double range);
double random_standard_normal(bitgen_t* bitgen);
double random_normal(bitgen_t* bitgen, double loc, double scale);
void random_bounded_uint64_fill(bitgen_t* bitgen, uint64_t low, uint64_t range, intptr_t count,
                                bool use_masked, uint64_t* out);
}

namespace pyfastenv {

namespace {

__extension__ typedef unsigned __int128 uint128;

constexpr uint128 MakeUint128(uint64_t high, uint64_t low) {
  return (static_cast<uint128>(high) << 64) | low;
}

constexpr uint128 kMultiplier = MakeUint128(2549297995355413924ULL, 4865540595714422341ULL);

// the mixing functions of seed_seq_fe
class Hasher {
 public:
  uint32_t operator()(uint32_t value) {
    value ^= constant_;
    constant_ *= 0x931e8875U;
    value *= constant_;
    return value ^ (value >> 16);
  }

 private:
  uint32_t constant_ = 0x43b0d7e5U;
};

uint32_t Mix(uint32_t x, uint32_t y) {
  const uint32_t result = 0xca01f9ddU * x - 0x4973f715U * y;
  return result ^ (result >> 16);
}

bitgen_t BitGenerator(Random* random) {
  return {
      random,
      [](void* r) { return static_cast<Random*>(r)->NextUint64(); },
      [](void* r) { return static_cast<Random*>(r)->NextUint32(); },
      [](void* r) { return static_cast<Random*>(r)->NextDouble(); },
      [](void* r) { return static_cast<Random*>(r)->NextUint64(); },
  };
}

}  // namespace

std::array<uint64_t, 4> SeedState(std::span<const uint32_t> entropy) {
  constexpr size_t kPoolSize = 4;
  std::array<uint32_t, kPoolSize> pool{};
  Hasher hash;
  for (size_t i = 0; i < kPoolSize; ++i) pool[i] = hash(i < entropy.size() ? entropy[i] : 0);
  for (size_t source = 0; source < kPoolSize; ++source) {
    for (size_t target = 0; target < kPoolSize; ++target) {
      if (source != target) pool[target] = Mix(pool[target], hash(pool[source]));
    }
  }
  for (size_t source = kPoolSize; source < entropy.size(); ++source) {
    for (uint32_t& target : pool) target = Mix(target, hash(entropy[source]));
  }

  uint32_t constant = 0x8b51f9ddU;
  std::array<uint64_t, 4> state{};
  for (size_t i = 0; i < 8; ++i) {
    uint32_t value = pool[i % kPoolSize] ^ constant;
    constant *= 0x58f38dedU;
    value *= constant;
    value ^= value >> 16;
    state[i / 2] |= static_cast<uint64_t>(value) << (32 * (i % 2));
  }
  return state;
}

Random::Random(std::span<const uint32_t> entropy) {
  const auto seed = SeedState(entropy);
  const uint128 increment = (MakeUint128(seed[2], seed[3]) << 1) | 1;
  increment_[0] = static_cast<uint64_t>(increment);
  increment_[1] = static_cast<uint64_t>(increment >> 64);
  Advance();
  const uint128 state = MakeUint128(state_[1], state_[0]) + MakeUint128(seed[0], seed[1]);
  state_[0] = static_cast<uint64_t>(state);
  state_[1] = static_cast<uint64_t>(state >> 64);
  Advance();
}

void Random::Advance() {
  const uint128 state =
      MakeUint128(state_[1], state_[0]) * kMultiplier + MakeUint128(increment_[1], increment_[0]);
  state_[0] = static_cast<uint64_t>(state);
  state_[1] = static_cast<uint64_t>(state >> 64);
}

uint64_t Random::NextUint64() {
  Advance();
  return std::rotr(state_[1] ^ state_[0], static_cast<int>(state_[1] >> 58));
}

uint32_t Random::NextUint32() {
  if (has_uint32_ != 0) {
    has_uint32_ = 0;
    return uinteger_;
  }
  const uint64_t next = NextUint64();
  has_uint32_ = 1;
  uinteger_ = static_cast<uint32_t>(next >> 32);
  return static_cast<uint32_t>(next);
}

double Random::Uniform(double low, double high) {
  bitgen_t bitgen = BitGenerator(this);
  return random_uniform(&bitgen, low, high - low);
}

double Random::StandardNormal() {
  bitgen_t bitgen = BitGenerator(this);
  return random_standard_normal(&bitgen);
}

double Random::Normal(double loc, double scale) {
  bitgen_t bitgen = BitGenerator(this);
  return random_normal(&bitgen, loc, scale);
}

int64_t Random::IntegersUpTo(int64_t low, int64_t high) {
  bitgen_t bitgen = BitGenerator(this);
  const auto first = static_cast<uint64_t>(low);
  uint64_t drawn = 0;
  random_bounded_uint64_fill(&bitgen, first, static_cast<uint64_t>(high) - first, 1,
                             /*use_masked=*/false, &drawn);
  return static_cast<int64_t>(drawn);
}

Random Random::FromWords(const std::array<uint64_t, 6>& words) {
  Random random;
  random.state_[1] = words[0];
  random.state_[0] = words[1];
  random.increment_[1] = words[2];
  random.increment_[0] = words[3];
  random.has_uint32_ = static_cast<uint32_t>(words[4]);
  random.uinteger_ = static_cast<uint32_t>(words[5]);
  return random;
}

std::array<uint64_t, 6> Random::state_words() const {
  return {state_[1], state_[0], increment_[1], increment_[0], has_uint32_, uinteger_};
}

}  // namespace pyfastenv
