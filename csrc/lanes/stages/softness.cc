// How soft a constraint is, from solref and solimp: mj_makeImpedance.
#include "lanes/stages/rows.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

LaneSoftness::LaneSoftness(const Lane* softness, const int* index) {
  Lane r[Softness::kNumbers];
  for (int i = 0; i < Softness::kNumbers; ++i) r[i] = softness[Softness::kNumbers * index[0] + i];
  for (int l = 1; l < kWidth; ++l) {
    if (index[l] == index[0]) continue;
    const Lane* from = softness + Softness::kNumbers * index[l];
    for (int i = 0; i < Softness::kNumbers; ++i) At(r[i], l) = At(from[i], l);
  }
  d0 = r[0], dwidth = r[1], width = r[2], midpoint = r[3];
  rise = r[4], fall = r[5], power = r[6], stiffness = r[7], damping = r[8];
}

namespace {

// xᵖ by the C library, lane by lane.
Lane Power(Lane x, Lane power) {
  Lane r = x;
  for (int l = 0; l < kWidth; ++l) At(r, l) = pow(At(x, l), At(power, l));
  return r;
}

// The sigmoid where the power is not 2.
Lane OtherSigmoid(const LaneSoftness& soft, Lane x) {
  const Lane low = soft.rise * Power(x, soft.power);
  const Lane high = 1.0 - soft.fall * Power(1.0 - x, soft.power);
  return Select(soft.power == 1.0, x, Select(x <= soft.midpoint, low, high));
}

}  // namespace

Lane Impedance(const LaneSoftness& soft, Lane violation) {
  const Lane x = Abs(violation / soft.width);
  const Lane low = soft.rise * (x * x);
  const Lane high = 1.0 - soft.fall * ((1.0 - x) * (1.0 - x));
  Lane y = Select(x <= soft.midpoint, low, high);
  const Mask other = soft.power != 2.0;
  if (Any(other)) y = Select(other, OtherSigmoid(soft, x), y);
  const Lane inside = soft.d0 + y * (soft.dwidth - soft.d0);
  return Select(x >= 1.0, soft.dwidth, Select(x <= 0.0, soft.d0, inside));
}

Lane Regularizer(Lane impedance, Lane inverse_weight) {
  return Max(Splat(kMinVal), (1.0 - impedance) * inverse_weight / impedance);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
