// Numbers below a float's normal range, as zero.
//
// Adam's moments of weights whose gradients have ended fade into that range, where Intel's
// processors compute about a hundred times slower. For learning only: physics keeps such numbers.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace pyfastenv {

/// While one lives, its thread takes them for zero.
class FlushDenormals {
 public:
  FlushDenormals() : before_(Control()) { SetControl(before_ | kFlush); }
  ~FlushDenormals() { SetControl(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  // the thread's control register of floating-point arithmetic
#if defined(__SSE2__)
  using Register = uint32_t;
  static constexpr Register kFlush = 0x8040;  // results to zero, and operands
  static Register Control() { return _mm_getcsr(); }
  static void SetControl(Register control) { _mm_setcsr(control); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register kFlush = Register{1} << 24;
  static Register Control() {
    Register control = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void SetControl(Register control) { __asm__ volatile("msr fpcr, %0" : : "r"(control)); }
#else
  using Register = uint32_t;
  static constexpr Register kFlush = 0;
  static Register Control() { return 0; }
  static void SetControl(Register /*control*/) {}
#endif

  Register before_;
};

}  // namespace pyfastenv
