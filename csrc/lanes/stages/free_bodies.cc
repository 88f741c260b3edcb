// implicitfast, free bodies without joints on them: accelerations by elimination with pivoting
// (mju_factorLU6, mju_solveLU6), which every lane may pivot otherwise.
#include "lanes/stages/spatial.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

constexpr int kSize = 6;

void SwapWhere(Mask m, Lane& a, Lane& b) {
  const Lane old = a;
  a = Select(m, b, a);
  b = Select(m, old, b);
}

class Elimination {
 public:
  explicit Elimination(const Lane* matrix) {
    for (int i = 0; i < kSize * kSize; ++i) A_[i] = matrix[i];
    for (int k = 0; k < kSize; ++k) {
      singular_ |= Bits(Pivot(k) < kMinVal) & kAllLanes;
      const Lane inverse = 1.0 / A_[kSize * k + k];
      for (int i = k + 1; i < kSize; ++i) {
        Lane* row = A_ + kSize * i;
        row[k] = row[k] * inverse;
        for (int j = k + 1; j < kSize; ++j) row[j] = row[j] - row[k] * A_[kSize * k + j];
      }
    }
  }

  /// Lanes in which a pivot is too small.
  unsigned singular() const { return singular_; }

  /// b becomes the solution.
  void Solve(Lane* x) const {
    for (int i = 0; i < kSize; ++i) {
      for (int r = i + 1; r < kSize; ++r) {
        if (Any(swapped_[i][r])) SwapWhere(swapped_[i][r], x[i], x[r]);
      }
      for (int j = 0; j < i; ++j) x[i] = x[i] - A_[kSize * i + j] * x[j];
    }
    for (int i = kSize - 1; i >= 0; --i) {
      for (int j = i + 1; j < kSize; ++j) x[i] = x[i] - A_[kSize * i + j] * x[j];
      x[i] = x[i] / A_[kSize * i + i];
    }
  }

 private:
  // Swaps row k with the first of those from it on whose entry in column k is the largest, which is
  // returned without its sign.
  Lane Pivot(int k) {
    Lane largest = Abs(A_[kSize * k + k]);
    for (int i = k + 1; i < kSize; ++i) {
      const Lane entry = Abs(A_[kSize * i + k]);
      const Mask larger = entry > largest;
      largest = Select(larger, entry, largest);
      for (int r = k + 1; r < i; ++r) swapped_[k][r] = swapped_[k][r] & !larger;
      swapped_[k][i] = larger;
    }
    for (int i = k + 1; i < kSize; ++i) {
      if (!Any(swapped_[k][i])) continue;
      for (int j = 0; j < kSize; ++j) {
        SwapWhere(swapped_[k][i], A_[kSize * k + j], A_[kSize * i + j]);
      }
    }
    return largest;
  }

  Lane A_[kSize * kSize];
  Mask swapped_[kSize][kSize];  // row k with row i
  unsigned singular_ = 0;
};

}  // namespace

void FreeBodyAccelerations(const Tables& t, Scratch& s) {
  for (int k = 0; k < t.num_free_bodies; ++k) {
    const int dof = t.free_body[k].dof;
    Lane* acc = s.acc + dof;
    for (int i = 0; i < kSize; ++i) acc[i] = s.qfrc_smooth[dof + i] + s.qfrc_constraint[dof + i];
    const Elimination elimination(s.free_matrix + kSize * kSize * k);
    s.redo |= elimination.singular();
    elimination.Solve(acc);
  }
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
