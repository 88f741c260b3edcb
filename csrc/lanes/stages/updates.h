// Updates of a Cholesky factor, made several at once.
#pragma once

#include "lanes/stages/cholesky.h"
#include "lanes/stages/scratch.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// An order of lanes in which the four with most updates are one half of eight, so that the other
/// half is done early (Cholesky::update); lanes stay where they are if that makes no difference.
class LaneOrder {
 public:
  /// Of matrices of n rows; `count` (kWidth): each lane's updates.
  LaneOrder(const int* count, int n);

  bool moves() const { return moves_; }
  Lane Ordered(Lane a) const { return Moved(a, from_); }
  unsigned Ordered(unsigned lanes) const;
  Lane Restored(Lane a) const { return Moved(a, to_); }

 private:
  static Lane Moved(Lane a, const int64_t* lanes) {
#if PYFASTENV_LANES == 8 && defined(__AVX512F__)
    return (Lane)_mm512_maskz_permutexvar_pd(0xff, _mm512_load_si512(lanes), (__m512d)a);
#else
    return a;
#endif
  }

  alignas(64) int64_t from_[kWidth], to_[kWidth];  // each place's lane, each lane's place
  bool moves_;
};

/// Each lane's updates in its own order, and the k-th of every lane at once, though they are of
/// different rows: the factor is updated as often as the busiest lane asks for.
class Updates {
 public:
  /// Of a factor of n rows; `rows` (kMaxUpdates, n) and `signs` (kMaxUpdates) are where they wait.
  Updates(const Cholesky& cholesky, Lane* factor, int n, Lane* rows, Lane* signs)
      : cholesky_(cholesky), factor_(factor), n_(n), rows_(rows), signs_(signs) {}

  /// Adds Σ sign x_k x_kᵀ, x (count <= 6, n), in `lanes`.
  void Add(const Lane* x, int count, Lane sign, unsigned lanes);
  /// Makes those that wait. Returns lanes that have lost rank by any of them.
  Mask Finish();

 private:
  // From row `place` on; other lanes' rows are zero until they get some.
  void Place(const Lane* x, int count, Lane sign, unsigned lanes, int place);

  const Cholesky& cholesky_;
  Lane* const factor_;
  const int n_;
  Lane *const rows_, *const signs_;
  int count_[kWidth] = {}, max_count_ = 0;  // that wait
  Mask low_ = FromBits(0);
};

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
