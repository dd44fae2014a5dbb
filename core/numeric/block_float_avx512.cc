// Block floating point with 512-bit vectors (AVX-512F).
#include "core/numeric/block_float_kernel.h"

// GCC 12 takes the undefined pass-through operands in its own header for our mistake (its bug
// 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace erar::numeric {
namespace {

struct Avx512 {
  using Floats = __m512;
  using Ints = __m512i;
  static constexpr std::size_t kWidth = 16;

  static Ints load(const void* from) { return _mm512_loadu_si512(static_cast<const Ints*>(from)); }
  static void store(void* to, Ints value) { _mm512_storeu_si512(static_cast<Ints*>(to), value); }
  static void stream(void* to, Ints value) { _mm512_stream_si512(static_cast<Ints*>(to), value); }
  static Ints splat(std::uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }
  static Floats splat(float value) { return _mm512_set1_ps(value); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  // Minus one in every odd lane whose even neighbour is less than the limit.
  static Ints add_borrow(Ints lanes, Ints limits, Ints values) {
    const unsigned borrowing = _mm512_cmpgt_epi32_mask(limits, values);
    const auto odd = static_cast<__mmask16>((borrowing & 0x5555U) << 1);
    return _mm512_mask_sub_epi32(lanes, odd, lanes, splat(1U));
  }
  static Ints bit_and(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints max(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Ints round(Floats value) { return _mm512_cvtps_epi32(value); }
  static Floats convert(Ints value) { return _mm512_cvtepi32_ps(value); }
  static Floats as_floats(Ints bits) { return _mm512_castsi512_ps(bits); }
  static Ints as_ints(Floats bits) { return _mm512_castps_si512(bits); }
};

}  // namespace

constexpr BlockFloatKernel kBlockFloatAvx512 = block_float_kernel<Avx512>();

}  // namespace erar::numeric
