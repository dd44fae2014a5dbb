// Block floating point with 256-bit vectors (AVX2).
#include "core/numeric/block_float_kernel.h"

#include <immintrin.h>

namespace erar::numeric {
namespace {

struct Avx2 {
  using Floats = __m256;
  using Ints = __m256i;
  static constexpr std::size_t kWidth = 8;

  static Ints load(const void* from) { return _mm256_loadu_si256(static_cast<const Ints*>(from)); }
  static void store(void* to, Ints value) { _mm256_storeu_si256(static_cast<Ints*>(to), value); }
  static void stream(void* to, Ints value) { _mm256_stream_si256(static_cast<Ints*>(to), value); }
  static Ints splat(std::uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }
  static Floats splat(float value) { return _mm256_set1_ps(value); }
  static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  // Minus one in every odd lane whose even neighbour is less than the limit.
  static Ints add_borrow(Ints lanes, Ints limits, Ints values) {
    return _mm256_add_epi32(lanes, _mm256_slli_epi64(_mm256_cmpgt_epi32(limits, values), 32));
  }
  static Ints bit_and(Ints a, Ints b) { return _mm256_and_si256(a, b); }
  static Ints max(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Ints round(Floats value) { return _mm256_cvtps_epi32(value); }
  static Floats convert(Ints value) { return _mm256_cvtepi32_ps(value); }
  static Floats as_floats(Ints bits) { return _mm256_castsi256_ps(bits); }
  static Ints as_ints(Floats bits) { return _mm256_castps_si256(bits); }
};

}  // namespace

constexpr BlockFloatKernel kBlockFloatAvx2 = block_float_kernel<Avx2>();

}  // namespace erar::numeric
