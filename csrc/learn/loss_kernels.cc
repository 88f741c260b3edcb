// One source, compiled for each vector unit: see CMakeLists.txt and nn/vector_math.h.
#include "learn/loss_kernels.h"

#include <cstddef>

#include "nn/vector_math.h"

namespace pyfastenv {

namespace {

GaussianSums GaussianLoss(const GaussianTerms& terms, const GaussianRows& rows, float* gradient,
                          float* log_std_gradient) {
  Vec policy_loss = {};
  Vec kl = {};
  Vec clipped_rows = {};
  IntVec row_numbers;
  for (int lane = 0; lane < kLanes; ++lane) row_numbers[lane] = lane;
  for (int row = 0; row < rows.stride; row += kLanes, row_numbers += kLanes) {
    const auto distance = [&](int i) {  // from the mean, in units of std
      const ptrdiff_t at = static_cast<ptrdiff_t>(i) * rows.stride + row;
      return (LoadVec(rows.actions + at) - LoadVec(rows.means + at)) * terms.inverse_std[i];
    };
    Vec squares = {};
    for (int i = 0; i < terms.num_actions; ++i) squares += distance(i) * distance(i);
    const Vec log_ratio =
        terms.log_prob_constant - 0.5F * squares - LoadVec(rows.old_log_probs + row);
    const Vec ratio = Exp(log_ratio);
    const Vec low = Fill(1.0F - terms.clip);
    const Vec high = Fill(1.0F + terms.clip);
    const Vec near = ratio < low ? low : (ratio > high ? high : ratio);
    const Vec advantage = LoadVec(rows.advantages + row);
    const Vec surrogate = advantage * ratio;
    const Vec clipped = advantage * near;
    const IntVec valid = row_numbers < rows.rows;
    // where the clipped term is the smaller, it is constant in the parameters
    const Vec weight = (valid & (surrogate <= clipped)) ? -terms.share * surrogate : Vec{};
    const Vec entropy_weight = valid ? Fill(terms.entropy_weight) : Vec{};
    for (int i = 0; i < terms.num_actions; ++i) {
      const Vec z = distance(i);
      StoreVec(gradient + static_cast<ptrdiff_t>(i) * rows.stride + row,
               weight * z * terms.inverse_std[i]);
      log_std_gradient[i] += Sum(weight * (z * z - 1.0F) - entropy_weight);
    }
    policy_loss -= valid ? (surrogate <= clipped ? surrogate : clipped) : Vec{};
    kl += valid ? ratio - 1.0F - log_ratio : Vec{};
    clipped_rows += (valid & (near != ratio)) ? Fill(1.0F) : Vec{};
  }
  return {Sum(policy_loss), Sum(kl), Sum(clipped_rows)};
}

}  // namespace

extern const GaussianLossFunction PYFASTENV_NAME(kGaussianLoss);
const GaussianLossFunction PYFASTENV_NAME(kGaussianLoss) = GaussianLoss;

}  // namespace pyfastenv
