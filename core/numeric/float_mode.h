// The floating point mode that a pass computes in, whatever the caller's MXCSR says.
#pragma once

#include <xmmintrin.h>

namespace erar::numeric {

// Flushed: denormal operands and results become zero, which spares a microcode assist of some 150
// cycles per denormal on many CPUs. Kept: IEEE arithmetic.
enum class Denormals { kFlushed, kKept };

// While it lives, floating point rounds to nearest even, masks all exceptions and treats denormals
// as said; then the caller's mode, exception flags included, is back. Effective only around calls
// the compiler cannot inline, as those through a kernel's function pointers are.
class FloatMode {
 public:
  explicit FloatMode(Denormals denormals) : callers_(_mm_getcsr()) {
    _mm_setcsr(denormals == Denormals::kFlushed ? kNearestMaskedFlushing : kNearestMasked);
  }
  ~FloatMode() { _mm_setcsr(callers_); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  static constexpr unsigned kNearestMasked = 0x1f80;
  static constexpr unsigned kNearestMaskedFlushing = 0x9fc0;
  unsigned callers_;
};

}  // namespace erar::numeric
