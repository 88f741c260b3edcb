#include "lanes/stages/jacobian.h"

#include "lanes/stages/sized.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// Of many dofs, most are not a row's: sums leave out what is zero. They begin with zero, so that
// this changes no bit.
struct RowDofs {
  RowDofs(const Jacobian& a, int row) : count(0) {
    for (uint64_t rest = a.dofs[row] >> a.first; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctzll(rest);
      if (i >= a.n) break;
      dof[count++] = i;
    }
  }

  int count, dof[kMaxDofs];
};

void TransposedByDofs(const Jacobian& a, const Lane* force, const unsigned* active, Lane* x) {
  for (int i = 0; i < a.n; ++i) x[i] = Splat(0);
  const Lane* row = a.J;
  for (int r = 0; r < a.num_rows; ++r, row += a.stride) {
    if (active[r] == 0) continue;
    const RowDofs dofs(a, r);
    const Lane f = force[r];
    for (int k = 0; k < dofs.count; ++k) x[dofs.dof[k]] = x[dofs.dof[k]] + row[dofs.dof[k]] * f;
  }
}

void GramByDofs(const Jacobian& a, const Lane* D, const unsigned* active, Lane* H) {
  for (int i = 0; i < a.n * a.n; ++i) H[i] = Splat(0);
  const Lane* row = a.J;
  for (int r = 0; r < a.num_rows; ++r, row += a.stride) {
    if (active[r] == 0) continue;
    const RowDofs dofs(a, r);
    const Lane weight = Select(FromBits(active[r]), D[r], Splat(0));
    for (int i = 0; i < dofs.count; ++i) {
      const Lane scale = row[dofs.dof[i]] * weight;
      Lane* h = H + dofs.dof[i] * a.n;
      for (int k = 0; k <= i; ++k) h[dofs.dof[k]] = h[dofs.dof[k]] + row[dofs.dof[k]] * scale;
    }
  }
}

// N dofs, or any number if N is 0.
template <int N>
struct Sized {
  static constexpr int kCapacity = N > 0 ? N : kMaxDofs;

  static void Multiply(const Jacobian& a, const Lane* x, const Lane* minus, Lane* r) {
    const Lane* row = a.J;
    for (int k = 0; k < a.num_rows; ++k, row += a.stride) {
      const Lane product = N > 0 ? Dot(row, x, N) : RowProduct(row, a.dofs[k] >> a.first, x, a.n);
      r[k] = minus != nullptr ? product - minus[k] : product;
    }
  }

  static void Transposed(const Jacobian& a, const Lane* force, const unsigned* active, Lane* x) {
    if constexpr (N == 0) return TransposedByDofs(a, force, active, x);
    Lane sum[kCapacity];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) sum[i] = Splat(0);
    const Lane* row = a.J;
    for (int k = 0; k < a.num_rows; ++k, row += a.stride) {
      if (active[k] == 0) continue;
      const Lane f = force[k];
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) sum[i] = sum[i] + row[i] * f;
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) x[i] = sum[i];
  }

  // One row of H: sums over the Jacobian's rows.
  template <int I>
  static void GramRow(const Jacobian& a, const Lane* D, const unsigned* active, Lane* h) {
    Lane sum[I + 1];
#pragma GCC unroll 16
    for (int k = 0; k <= I; ++k) sum[k] = Splat(0);
    const Lane* row = a.J;
    for (int r = 0; r < a.num_rows; ++r, row += a.stride) {
      if (active[r] == 0 || (a.dofs[r] >> (a.first + I) & 1) == 0) continue;
      const Lane scale = row[I] * Select(FromBits(active[r]), D[r], Splat(0));
#pragma GCC unroll 16
      for (int k = 0; k <= I; ++k) sum[k] = sum[k] + row[k] * scale;
    }
#pragma GCC unroll 16
    for (int k = 0; k <= I; ++k) h[k] = sum[k];
  }

  template <int I = 0>
  static void GramRows(const Jacobian& a, const Lane* D, const unsigned* active, Lane* H) {
    if constexpr (I < N) {
      GramRow<I>(a, D, active, H + I * N);
      GramRows<I + 1>(a, D, active, H);
    }
  }

  static void Gram(const Jacobian& a, const Lane* D, const unsigned* active, Lane* H) {
    if constexpr (N > 0) {
      GramRows(a, D, active, H);
    } else {
      GramByDofs(a, D, active, H);
    }
  }

  static constexpr JacobianProducts kFunctions = {
      .multiply = Multiply, .transposed = Transposed, .gram = Gram};
};

}  // namespace

const JacobianProducts& JacobianProductsOfSize(int n) { return FunctionsOfSize<Sized>(n); }

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
