#include "learn/adam_step.h"

#include <cmath>

namespace pyfastenv {

AdamStep MakeAdamStep(float lr, float beta1, float beta2, float eps, int64_t step) {
  const auto count = static_cast<double>(step);
  AdamStep result{};
  result.lr = static_cast<float>(lr / (1.0 - std::pow(beta1, count)));
  result.beta1 = beta1;
  result.beta2 = beta2;
  result.root_correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, count)));
  result.eps = eps;
  result.grad_scale = 1.0F;
  return result;
}

}  // namespace pyfastenv
