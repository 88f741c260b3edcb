// Which of the compiled kernels runs: the only place that asks the processor.
#include "core/mlp_kernels.h"
#include "core/train_kernels.h"

namespace pyfastenv {

void DenseBaseline(const DenseLayer& layer, const float* x, Activation activation, float* y);
extern const TrainKernels kTrainBaseline;
#ifdef PYFASTENV_X86_KERNELS
void DenseAvx2(const DenseLayer& layer, const float* x, Activation activation, float* y);
extern const TrainKernels kTrainAvx2;
extern const TrainKernels kTrainAvx512;

namespace {

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

}  // namespace
#endif

DenseFunction BestDense() {
#ifdef PYFASTENV_X86_KERNELS
  if (HasAvx2()) return DenseAvx2;
#endif
  return DenseBaseline;
}

const TrainKernels& BestTrainKernels() {
#ifdef PYFASTENV_X86_KERNELS
  if (__builtin_cpu_supports("avx512f")) return kTrainAvx512;
  if (HasAvx2()) return kTrainAvx2;
#endif
  return kTrainBaseline;
}

}  // namespace pyfastenv
