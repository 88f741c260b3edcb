// What the processor can do, asked in one place.
#pragma once

namespace pyfastenv {

inline bool HasAvx2() {
#ifdef PYFASTENV_X86_KERNELS
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

inline bool HasAvx512() {
#ifdef PYFASTENV_X86_KERNELS
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

}  // namespace pyfastenv
