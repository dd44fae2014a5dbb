// Block floating point with 128-bit vectors (SSE2, which every x86-64 CPU has).
#include "core/numeric/block_float_kernel.h"

#include <emmintrin.h>

namespace erar::numeric {
namespace {

struct Sse2 {
  using Floats = __m128;
  using Ints = __m128i;
  static constexpr std::size_t kWidth = 4;

  static Ints load(const void* from) { return _mm_loadu_si128(static_cast<const Ints*>(from)); }
  static void store(void* to, Ints value) { _mm_storeu_si128(static_cast<Ints*>(to), value); }
  static void stream(void* to, Ints value) { _mm_stream_si128(static_cast<Ints*>(to), value); }
  static Ints splat(std::uint32_t value) { return _mm_set1_epi32(static_cast<int>(value)); }
  static Floats splat(float value) { return _mm_set1_ps(value); }
  static Ints add(Ints a, Ints b) { return _mm_add_epi32(a, b); }
  // Minus one in every odd lane whose even neighbour is less than the limit.
  static Ints add_borrow(Ints lanes, Ints limits, Ints values) {
    return _mm_add_epi32(lanes, _mm_slli_epi64(_mm_cmpgt_epi32(limits, values), 32));
  }
  static Ints bit_and(Ints a, Ints b) { return _mm_and_si128(a, b); }
  // _mm_max_epi32 came with SSE4.1.
  static Ints max(Ints a, Ints b) {
    const Ints greater = _mm_cmpgt_epi32(a, b);
    return _mm_or_si128(_mm_and_si128(greater, a), _mm_andnot_si128(greater, b));
  }
  static Floats multiply(Floats a, Floats b) { return _mm_mul_ps(a, b); }
  static Ints round(Floats value) { return _mm_cvtps_epi32(value); }
  static Floats convert(Ints value) { return _mm_cvtepi32_ps(value); }
  static Floats as_floats(Ints bits) { return _mm_castsi128_ps(bits); }
  static Ints as_ints(Floats bits) { return _mm_castps_si128(bits); }
};

}  // namespace

constexpr BlockFloatKernel kBlockFloatSse2 = block_float_kernel<Sse2>();

}  // namespace erar::numeric
