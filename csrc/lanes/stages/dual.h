// The dual problem: the forces f of rows that minimize ½ fᵀ A f + fᵀ b with A = J M⁻¹ Jᵀ + R,
// within bounds: none for equalities, the loss either way for dry friction, f >= 0 for the others.
//
// A is made in all lanes at once. Sweeps over rows run lane by lane, since each is a chain of
// dependent operations whose order depends on the rows a lane has.
#pragma once

#include "lanes/stages/scratch.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

// Four doubles on any processor (as two registers where there are only pairs).
using Quad = double __attribute__((vector_size(32), aligned(8)));

inline Quad LoadQuad(const double* x) { return *reinterpret_cast<const Quad*>(x); }

/// mju_dot of doubles.
[[gnu::always_inline]] inline double DotScalar(const double* a, const double* b, int n) {
  double r = 0;
  int k = 0;
  if (n >= 4) {
    Quad sum = LoadQuad(a) * LoadQuad(b);
    for (k = 4; k + 4 <= n; k += 4) sum = sum + LoadQuad(a + k) * LoadQuad(b + k);
    r = (sum[0] + sum[2]) + (sum[1] + sum[3]);
  }
  switch (n - k) {
    case 3:
      return r + (a[k] * b[k] + a[k + 1] * b[k + 1] + a[k + 2] * b[k + 2]);
    case 2:
      return r + (a[k] * b[k] + a[k + 1] * b[k + 1]);
    case 1:
      return r + a[k] * b[k];
    default:
      return r;
  }
}

/// A row's part in what holds without slipping: a dry friction, the first of two opposite edges of
/// a pyramid.
enum class Slip : unsigned char { kNone, kDry, kEdge };

/// The problem of one island of a lane, whose rows stand among all of that lane's, and working
/// vectors of all, of length n and up to four more that add nothing: whole fours have no remainder
/// to branch on.
struct LaneProblem {
  int lane, n, stride;
  int count;    // of the island's rows
  int* rows;    // (count)
  double* A;    // (n, stride), symmetric; then negative zeros
  double none;  // that mju_dot's sum begins with
  double *b, *force, *product, *inverse_diagonal, *diagonal, *previous, *extrapolated, *low, *high;
  double* R;  // the part of A's diagonal that makes constraints soft
  Slip* slip;
  uint16_t* own_order;  // of sweeps that are not in the table
  double scale;
  bool has_own_order;
  uint64_t random;  // behind own_order
  const uint16_t* order;
  int steps;  // since momentum was last dropped
  double improvement;

  /// mju_dot of a row of A and the forces.
  [[gnu::always_inline]] double Product(int i) const {
    const double* row = A + i * stride;
    const int tail = stride - 4;
    Quad sum = {none, none, none, none};
    for (int k = 0; k < tail; k += 4) sum = sum + LoadQuad(row + k) * LoadQuad(force + k);
    const Quad rest = LoadQuad(row + tail) * LoadQuad(force + tail);
    return (sum[0] + sum[2]) + (sum[1] + sum[3]) + (rest[0] + rest[1] + rest[2]);
  }
  /// x, one or four numbers from i on, within the bounds; by two selections: branches on what
  /// nobody can foretell take longer.
  template <class T>
  T Bounded(int i, T x) const {
    const T least = Part<T>(low, i), most = Part<T>(high, i);
    const T raised = x < least ? least : x;
    return raised > most ? most : raised;
  }
  template <class T>
  static T& Part(double* vector, int i) {
    return *reinterpret_cast<T*>(vector + i);
  }
  // sweeps of PGS
  void Begin();  // for all islands of the lane
  void Extrapolate(bool first);
  template <class T>
  void ExtrapolatePart(int i, double beta);
  void SetOrder(VisitOrders& orders, int sweep);
  void Visit(int i);
  bool Opposed() const;
  /// Sweeps that make friction hold without slipping: solNoSlip.
  void RemoveSlip(const Tables& t);
};

constexpr int kMaxProblems = kWidth * kMaxDofs;

/// A and b in lanes.
void MakeDualProblem(const Tables& t, Scratch& s);
/// Takes lanes' problems out, of all islands, with rows' forces to start from; PGS `begins` them.
/// Returns how many.
int ExtractProblems(const Tables& t, Scratch& s, bool begins, LaneProblem* problems);
/// Puts the solutions into rows' forces, and sets qfrc_constraint and qacc by them: mj_dualFinish.
void FinishDual(const Tables& t, Scratch& s, const LaneProblem* problems, int count);

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
