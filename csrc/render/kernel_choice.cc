#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "nn/processor.h"
#include "render/kernels.h"

namespace pyfastenv::render {

namespace Baseline {
extern const Kernels kKernels;
}
#ifdef PYFASTENV_X86_KERNELS
namespace Avx2 {
extern const Kernels kKernels;
}
namespace Avx512 {
extern const Kernels kKernels;
}
#endif

const Kernels* KernelsOf(const char* name) {
#ifdef PYFASTENV_X86_KERNELS
  if (std::strcmp(name, "avx512") == 0 && ThisProcessor().avx512) return &Avx512::kKernels;
  if (std::strcmp(name, "avx2") == 0 && ThisProcessor().avx2) return &Avx2::kKernels;
#endif
  return std::strcmp(name, "baseline") == 0 ? &Baseline::kKernels : nullptr;
}

const Kernels& BestKernels() {
  if (const char* wanted = std::getenv("PYFASTENV_RENDER"); wanted != nullptr && *wanted != '\0') {
    const Kernels* kernels = KernelsOf(wanted);
    if (kernels == nullptr) {
      throw std::invalid_argument(std::string("PYFASTENV_RENDER: expected avx512, avx2 or "
                                              "baseline that this processor has, got ") +
                                  wanted);
    }
    return *kernels;
  }
  for (const char* name : {"avx512", "avx2"}) {
    if (const Kernels* kernels = KernelsOf(name)) return *kernels;
  }
  return Baseline::kKernels;
}

}  // namespace pyfastenv::render
