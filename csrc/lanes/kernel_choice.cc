#include <cstdlib>
#include <stdexcept>
#include <string>

#include "lanes/kernels.h"
#include "nn/processor.h"

namespace pyfastenv::lanes {

namespace lanes1 {
extern const Kernels kKernels;
}
namespace lanes2 {
extern const Kernels kKernels;
}
namespace lanes4 {
extern const Kernels kKernels;
}
namespace lanes8 {
extern const Kernels kKernels;
}

const Kernels* KernelsOfWidth(int width) {
  if (width == 8 && ThisProcessor().avx512) return &lanes8::kKernels;
  if (width == 4 && ThisProcessor().avx2) return &lanes4::kKernels;
  if (width == 2) return &lanes2::kKernels;
  return width == 1 ? &lanes1::kKernels : nullptr;
}

const Kernels& BestKernels() {
  if (const char* wanted = std::getenv("PYFASTENV_LANES"); wanted != nullptr && *wanted != '\0') {
    const Kernels* kernels = KernelsOfWidth(std::atoi(wanted));
    if (kernels == nullptr) {
      throw std::invalid_argument(
          std::string("PYFASTENV_LANES: expected 1, 2, 4 or 8 lanes that this "
                      "processor has, got ") +
          wanted);
    }
    return *kernels;
  }
  for (const int width : {8, 4}) {
    if (const Kernels* kernels = KernelsOfWidth(width)) return *kernels;
  }
  return lanes2::kKernels;
}

}  // namespace pyfastenv::lanes
