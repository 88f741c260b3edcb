// NumPy's random streams: SeedSequence, PCG64, and the distributions environments draw from.
//
// A Random seeded with the words of an integer gives the numbers that
// `numpy.random.Generator(PCG64(SeedSequence(integer)))` gives, bit for bit. It is 40 bytes,
// trivially copyable (a copy is a snapshot), and is not safe to share between threads.
// Algorithms: M. E. O'Neill, PCG (HMC-CS-2014-0905) and seed_seq_fe;
// numpy/random/bit_generator.pyx.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

namespace pyfastenv {

/// SeedSequence(entropy).generate_state(4, uint64), entropy as little-endian 32-bit words.
std::array<uint64_t, 4> SeedState(std::span<const uint32_t> entropy);

class Random {
 public:
  Random() = default;
  explicit Random(std::span<const uint32_t> entropy);
  /// The stream that has these state_words().
  static Random FromWords(const std::array<uint64_t, 6>& words);

  uint64_t NextUint64();
  uint32_t NextUint32();
  double NextDouble() {
    return static_cast<double>(NextUint64() >> 11) * (1.0 / 9007199254740992.0);
  }

  /// Generator.uniform(low, high) of one value.
  double Uniform(double low, double high);
  /// Generator.standard_normal() of one value.
  double StandardNormal();
  /// Generator.normal(loc, scale) of one value.
  double Normal(double loc, double scale);
  /// Generator.integers(low, high) of one value; low < high.
  int64_t Integers(int64_t low, int64_t high) { return IntegersUpTo(low, high - 1); }
  /// Generator.integers(low, high, endpoint=True) of one value; low <= high.
  int64_t IntegersUpTo(int64_t low, int64_t high);

  /// NumPy's bit_generator.state: high and low words of state and increment, has_uint32, uinteger.
  std::array<uint64_t, 6> state_words() const;

 private:
  void Advance();

  // 128-bit numbers as words: {low, high}
  uint64_t state_[2] = {0, 0};
  uint64_t increment_[2] = {0, 0};
  uint32_t has_uint32_ = 0;
  uint32_t uinteger_ = 0;
};

static_assert(sizeof(Random) == 40 && std::is_trivially_copyable_v<Random>);

}  // namespace pyfastenv
