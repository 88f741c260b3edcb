// What the processor can do and the system lets it, asked in one place, and of CPUID itself:
// __builtin_cpu_supports asks a run-time library, and Zig's says no to everything.
#pragma once

#ifdef PYFASTENV_X86_KERNELS
#include <cpuid.h>
#endif

namespace pyfastenv {

/// Nothing of it on other processors than x86-64.
struct Processor {
  bool avx2 = false;         // with FMA
  bool avx512 = false;       // F, DQ, BW and VL
  bool avx512_bf16 = false;  // conversions to bfloat16 and dot products
  bool amx_bf16 = false;     // its tiles, with avx512_bf16; Linux wants to be asked besides
};

inline Processor FindProcessor() {
  Processor found;
#ifdef PYFASTENV_X86_KERNELS
  unsigned a = 0, b = 0, c = 0, d = 0;
  const auto has = [](unsigned word, int bit) { return (word >> bit & 1U) != 0; };
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || !has(c, 27)) return found;  // OSXSAVE
  const bool fma = has(c, 12);
  // which registers the system keeps for a process; NOLINTNEXTLINE(misc-const-correctness)
  unsigned saved = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  constexpr unsigned kYmm = 0x6, kZmm = 0xe6;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
  found.avx2 = (saved & kYmm) == kYmm && fma && has(b, 5);
  found.avx512 =
      (saved & kZmm) == kZmm && found.avx2 && has(b, 16) && has(b, 17) && has(b, 30) && has(b, 31);
  const bool tiles = has(d, 22) && has(d, 24);
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return found;
  found.avx512_bf16 = found.avx512 && has(a, 5);
  found.amx_bf16 = found.avx512_bf16 && tiles;
#endif
  return found;
}

inline const Processor& ThisProcessor() {
  static const Processor found = FindProcessor();
  return found;
}

}  // namespace pyfastenv
