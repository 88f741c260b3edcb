// What critics that predict distributions over bins (pyfastenv/algorithms/flashsac/spec.py) learn
// from, and its slope, compiled for different vector units. Which of them runs is decided once per
// process.
#pragma once

#include <cstddef>

namespace pyfastenv {

/// Ascending, at equal distances; at least two.
struct Bins {
  const float* values;
  int count;
};

/// Transitions of a seed and what its two critics and their targets say; logits (rows, bins) of the
/// second critic stand `critic_stride` numbers after the first one's.
struct BinRows {
  int rows;
  ptrdiff_t critic_stride;
  const float* found;      // logits of the critics where the transitions begin
  const float* target;     // … of the target critics where they end
  const float* rewards;    // (rows)
  const float* discounts;  // (rows) 0 at terminations
  const float* bonus;      // (rows) what the policy's entropy takes off there
};

struct BinKernels {
  /// least (rows) = the smaller of two critics' means, and `slope` times its gradient by the logits
  /// (2, rows, bins) of both. memory: BinMemory(bins.count) zeros, here and below.
  void (*least)(const float* logits, int rows, const Bins& bins, float slope, float* memory,
                float* least, float* gradient);
  /// Cross-entropy to the distribution that the more careful target critic expects, the mean over
  /// rows and critics; by_found: its gradient by `found`, laid out like it.
  double (*cross_entropy)(const BinRows& rows, const Bins& bins, float* memory, float* by_found);
};

/// Five rows of bins, each padded to whole vectors of any unit.
constexpr size_t BinMemory(int count) { return 5 * ((static_cast<size_t>(count) + 15) / 16 * 16); }

const BinKernels& BestBinKernels();

}  // namespace pyfastenv
