#include "lanes/stages/updates.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

void Updates::Add(const Lane* x, int count, Lane sign, unsigned lanes) {
  for (unsigned some = lanes; some != 0; some &= some - 1) {
    if (count_[__builtin_ctz(some)] + count <= SolverScratch::kMaxUpdates) continue;
    Finish();
    break;
  }
  while (lanes != 0) {
    const int place = count_[__builtin_ctz(lanes)];
    unsigned here = 0;
    for (unsigned some = lanes; some != 0; some &= some - 1) {
      const int l = __builtin_ctz(some);
      if (count_[l] == place) here |= 1u << l;
    }
    Place(x, count, sign, here, place);
    lanes &= ~here;
  }
}

void Updates::Place(const Lane* x, int count, Lane sign, unsigned lanes, int place) {
  const Mask mask = FromBits(lanes);
  for (int k = place; k < place + count; ++k, x += n_) {
    Lane* row = rows_ + k * n_;
    if (k == max_count_) {  // nobody's yet
      ++max_count_;
      for (int i = 0; i < n_; ++i) row[i] = Select(mask, x[i], Splat(0));
      signs_[k] = Select(mask, sign, Splat(1));
    } else {
      for (int i = 0; i < n_; ++i) row[i] = Select(mask, x[i], row[i]);
      signs_[k] = Select(mask, sign, signs_[k]);
    }
  }
  for (; lanes != 0; lanes &= lanes - 1) count_[__builtin_ctz(lanes)] = place + count;
}

Mask Updates::Finish() {
  HalfCounts counts = {0, 0};
  for (int l = 0; l < kWidth; ++l) {
    int& most = 2 * l < kWidth ? counts.first : counts.second;
    if (count_[l] > most) most = count_[l];
    count_[l] = 0;
  }
  if (max_count_ > 0) low_ = low_ | cholesky_.update(factor_, rows_, signs_, counts, n_);
  max_count_ = 0;
  return low_;
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
