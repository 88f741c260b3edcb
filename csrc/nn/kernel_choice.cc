// Which of the compiled layers runs.
#include "nn/mlp_kernels.h"
#include "nn/processor.h"

namespace pyfastenv {

void DenseBaseline(const DenseLayer& layer, int count, const float* const* x, Activation activation,
                   float* const* y);
#ifdef PYFASTENV_X86_KERNELS
void DenseAvx2(const DenseLayer& layer, int count, const float* const* x, Activation activation,
               float* const* y);
void DenseAvx512(const DenseLayer& layer, int count, const float* const* x, Activation activation,
                 float* const* y);
#endif

DenseFunction BestDense([[maybe_unused]] int count) {
#ifdef PYFASTENV_X86_KERNELS
  if (ThisProcessor().avx512 && count > 4) return DenseAvx512;
  if (ThisProcessor().avx2) return DenseAvx2;
#endif
  return DenseBaseline;
}

}  // namespace pyfastenv
