// The numbers of one step of Adam (Kingma and Ba 2015, arXiv:1412.6980).
#pragma once

#include <cstdint>

namespace pyfastenv {

struct AdamStep {
  float lr;  // with the bias correction of the first moment
  float beta1;
  float beta2;
  float root_correction;  // 1 / sqrt(1 - beta2^step)
  float eps;
  float grad_scale;
  float decay;  // times the parameters, added to the gradients
};

/// `step` counts from 1; the gradient is taken as it is.
AdamStep MakeAdamStep(float lr, float beta1, float beta2, float eps, int64_t step);

}  // namespace pyfastenv
