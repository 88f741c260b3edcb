// Functions for a fixed number of dofs: what is computed with stays in registers when loops over
// dofs are unrolled. Larger sizes take loops; the bits are the same.
#pragma once

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

constexpr int kMaxUnrolled = 16;

/// Table<N>::kFunctions of N = n, or of N = 0 (any size) if n is not unrolled.
template <template <int> class Table, int N = 1>
const auto& FunctionsOfSize(int n) {
  if constexpr (N > kMaxUnrolled) {
    return Table<0>::kFunctions;
  } else {
    return n == N ? Table<N>::kFunctions : FunctionsOfSize<Table, N + 1>(n);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
