#include "lanes/stages/updates.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

LaneOrder::LaneOrder(const int* count, int n) {
  int most[2] = {0, 0};  // of the halves as they are
  for (int l = 0; l < kWidth; ++l) {
    int& of_half = most[2 * l < kWidth ? 0 : 1];
    if (count[l] > of_half) of_half = count[l];
    int place = l;
    for (; place > 0 && count[from_[place - 1]] < count[l]; --place)
      from_[place] = from_[place - 1];
    from_[place] = l;
  }
  const int less = most[0] < most[1] ? most[0] : most[1];
  moves_ = UpdatesInHalves(n) && count[from_[kWidth / 2]] < less;
  for (int place = 0; place < kWidth; ++place) {
    if (!moves_) from_[place] = place;
    to_[from_[place]] = place;
  }
}

unsigned LaneOrder::Ordered(unsigned lanes) const {
  unsigned ordered = 0;
  for (; lanes != 0; lanes &= lanes - 1) ordered |= 1u << to_[__builtin_ctz(lanes)];
  return ordered;
}

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
