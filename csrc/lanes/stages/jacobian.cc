#include "lanes/stages/jacobian.h"

#include "lanes/stages/blas.h"
#include "lanes/stages/sized.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// N dofs, or any number if N is 0.
template <int N>
struct Sized {
  static constexpr int kCapacity = N > 0 ? N : kMaxDofs;

  static void Multiply(const Jacobian& a, const Lane* x, const Lane* minus, Lane* r) {
    const int n = N > 0 ? N : a.n;
    const Lane* row = a.J;
    for (int k = 0; k < a.num_rows; ++k, row += a.stride) {
      const Lane product = Dot(row, x, n);
      r[k] = minus != nullptr ? product - minus[k] : product;
    }
  }

  static void Transposed(const Jacobian& a, const Lane* force, const unsigned* active, Lane* x) {
    const int n = N > 0 ? N : a.n;
    Lane sum[kCapacity];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) sum[i] = Splat(0);
    const Lane* row = a.J;
    for (int k = 0; k < a.num_rows; ++k, row += a.stride) {
      if (active[k] == 0) continue;
      const Lane f = force[k];
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) sum[i] = sum[i] + row[i] * f;
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) x[i] = sum[i];
  }

  // One row of H: sums over the Jacobian's rows.
  template <int I>
  static void GramRow(const Jacobian& a, const Lane* D, const unsigned* active,
                      const uint64_t* dofs, int first, Lane* h, int i) {
    const int length = N > 0 ? I + 1 : i + 1;
    Lane sum[kCapacity];
#pragma GCC unroll 16
    for (int k = 0; k < length; ++k) sum[k] = Splat(0);
    const Lane* row = a.J;
    for (int r = 0; r < a.num_rows; ++r, row += a.stride) {
      if (active[r] == 0 || (dofs[r] >> (first + i) & 1) == 0) continue;
      const Lane scale = row[i] * Select(FromBits(active[r]), D[r], Splat(0));
#pragma GCC unroll 16
      for (int k = 0; k < length; ++k) sum[k] = sum[k] + row[k] * scale;
    }
#pragma GCC unroll 16
    for (int k = 0; k < length; ++k) h[k] = sum[k];
  }

  template <int I = 0>
  static void GramRows(const Jacobian& a, const Lane* D, const unsigned* active,
                       const uint64_t* dofs, int first, Lane* H) {
    if constexpr (I < N) {
      GramRow<I>(a, D, active, dofs, first, H + I * N, I);
      GramRows<I + 1>(a, D, active, dofs, first, H);
    }
  }

  static void Gram(const Jacobian& a, const Lane* D, const unsigned* active, const uint64_t* dofs,
                   int first, Lane* H) {
    if constexpr (N > 0) {
      GramRows(a, D, active, dofs, first, H);
    } else {
      for (int i = 0; i < a.n; ++i) GramRow<0>(a, D, active, dofs, first, H + i * a.n, i);
    }
  }

  static constexpr JacobianProducts kFunctions = {
      .multiply = Multiply, .transposed = Transposed, .gram = Gram};
};

}  // namespace

const JacobianProducts& JacobianProductsOfSize(int n) { return FunctionsOfSize<Sized>(n); }

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
