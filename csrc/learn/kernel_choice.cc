// Which of the compiled training kernels runs.
#include "learn/bf16_kernels.h"
#include "learn/bin_kernels.h"
#include "learn/gaussian_kernels.h"
#include "learn/loss_kernels.h"
#include "learn/train_kernels.h"
#include "learn/unit_kernels.h"
#include "nn/processor.h"

#ifdef PYFASTENV_BF16_KERNELS
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#endif

namespace pyfastenv {

extern const TrainKernels kTrainBaseline;
extern const GaussianLossFunction kGaussianLossBaseline;
extern const BinKernels kBinKernelsBaseline;
extern const GaussianKernels kGaussianBaseline;
#ifdef PYFASTENV_X86_KERNELS
extern const TrainKernels kTrainAvx2;
extern const TrainKernels kTrainAvx512;
extern const GaussianLossFunction kGaussianLossAvx2;
extern const GaussianLossFunction kGaussianLossAvx512;
extern const BinKernels kBinKernelsAvx2;
extern const GaussianKernels kGaussianAvx2;
extern const BinKernels kBinKernelsAvx512;
extern const GaussianKernels kGaussianAvx512;
#endif

// The best of what one source was compiled to.
#ifdef PYFASTENV_X86_KERNELS
#define PYFASTENV_BEST(name) \
  (ThisProcessor().avx512 ? name##Avx512 : ThisProcessor().avx2 ? name##Avx2 : name##Baseline)
#else
#define PYFASTENV_BEST(name) name##Baseline
#endif

const TrainKernels& BestTrainKernels() { return PYFASTENV_BEST(kTrain); }

GaussianLossFunction BestGaussianLoss() { return PYFASTENV_BEST(kGaussianLoss); }

const BinKernels& BestBinKernels() { return PYFASTENV_BEST(kBinKernels); }

const GaussianKernels& BestGaussianKernels() { return PYFASTENV_BEST(kGaussian); }

#ifdef PYFASTENV_BF16_KERNELS
extern const Bf16Kernels kBf16Amx;
extern const Bf16Kernels kBf16Avx512;
extern const UnitKernels kUnitAmx;
extern const UnitKernels kUnitAvx512;

namespace {

bool HasAmx() {
  // nothing here sets variables
  const char* wanted = std::getenv("PYFASTENV_BF16");  // NOLINT(concurrency-mt-unsafe)
  if (wanted != nullptr && std::strcmp(wanted, "avx512") == 0) return false;
  if (!ThisProcessor().amx_bf16) return false;
  // the kernel gives the tiles' state only to processes that ask for it
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace
#endif

const Bf16Kernels* BestBf16Kernels() {
#ifdef PYFASTENV_BF16_KERNELS
  static const bool has_amx = HasAmx();
  if (has_amx) return &kBf16Amx;
  if (ThisProcessor().avx512_bf16) return &kBf16Avx512;
#endif
  return nullptr;
}

const UnitKernels* BestUnitKernels() {
#ifdef PYFASTENV_BF16_KERNELS
  if (BestBf16Kernels() == &kBf16Amx) return &kUnitAmx;
  if (BestBf16Kernels() == &kBf16Avx512) return &kUnitAvx512;
#endif
  return nullptr;
}

}  // namespace pyfastenv
