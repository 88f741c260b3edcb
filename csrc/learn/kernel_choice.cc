// Which of the compiled training kernels runs.
#include "learn/amx_kernels.h"
#include "learn/loss_kernels.h"
#include "learn/train_kernels.h"
#include "nn/processor.h"

#ifdef PYFASTENV_AMX_KERNELS
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace pyfastenv {

extern const TrainKernels kTrainBaseline;
extern const GaussianLossFunction kGaussianLossBaseline;
#ifdef PYFASTENV_X86_KERNELS
extern const TrainKernels kTrainAvx2;
extern const TrainKernels kTrainAvx512;
extern const GaussianLossFunction kGaussianLossAvx2;
extern const GaussianLossFunction kGaussianLossAvx512;
#endif

const TrainKernels& BestTrainKernels() {
#ifdef PYFASTENV_X86_KERNELS
  if (HasAvx512()) return kTrainAvx512;
  if (HasAvx2()) return kTrainAvx2;
#endif
  return kTrainBaseline;
}

GaussianLossFunction BestGaussianLoss() {
#ifdef PYFASTENV_X86_KERNELS
  if (HasAvx512()) return kGaussianLossAvx512;
  if (HasAvx2()) return kGaussianLossAvx2;
#endif
  return kGaussianLossBaseline;
}

#ifdef PYFASTENV_AMX_KERNELS
extern const AmxKernels kAmx;

namespace {

bool HasAmx() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool tiles = (d >> 24 & 1U) != 0 && (d >> 22 & 1U) != 0;  // AMX-TILE, AMX-BF16
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return false;
  const bool converts = (a >> 5 & 1U) != 0;  // AVX512-BF16
  if (!tiles || !converts || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
    return false;
  }
  // the kernel gives the tiles' state only to processes that ask for it
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace
#endif

const AmxKernels* BestAmxKernels() {
#ifdef PYFASTENV_AMX_KERNELS
  static const bool has_amx = HasAmx();
  if (has_amx) return &kAmx;
#endif
  return nullptr;
}

}  // namespace pyfastenv
