// 16-bit floats: element by element in loops that are vectorised, but float16 by F16C where the CPU
// has it. Both give the same bits, NaNs included.
#include "core/numeric/half.h"

#include "core/numeric/float_mode.h"
#include "core/numeric/half_element.h"
#include "core/numeric/per_instruction_set.h"

#include <immintrin.h>

namespace erar::numeric {
namespace {

template <class Half>
struct ToFloat {
  [[gnu::always_inline]] static void run(const std::uint16_t* values, std::size_t count,
                                         float* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      Half half;
      half.bits = load_at<std::uint16_t>(values, i);
      store_at(out, i, static_cast<float>(half));
    }
  }
};

template <class Half>
struct ToHalf {
  [[gnu::always_inline]] static void run(const float* values, std::size_t count,
                                         std::uint16_t* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) store_at(out, i, Half(load_at<float>(values, i)).bits);
  }
};

constexpr std::size_t kF16cWidth = 8;

[[gnu::noinline, gnu::target("f16c")]] void float16_to_float_f16c(const std::uint16_t* values,
                                                                  std::size_t count, float* out) {
  std::size_t i = 0;
  for (; i + kF16cWidth <= count; i += kF16cWidth) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
  }
  for (; i < count; ++i) {
    // Stored as a word: to pass through a float could cost a signalling NaN its bits elsewhere.
    const __m128i one = _mm_cvtsi32_si128(values[i]);
    store_at(out, i, _mm_cvtsi128_si32(_mm_castps_si128(_mm_cvtph_ps(one))));
  }
}

[[gnu::noinline, gnu::target("f16c")]] void float_to_float16_f16c(const float* values,
                                                                  std::size_t count,
                                                                  std::uint16_t* out) {
  std::size_t i = 0;
  for (; i + kF16cWidth <= count; i += kF16cWidth) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
  for (; i < count; ++i) {
    const __m128 one = _mm_castsi128_ps(_mm_cvtsi32_si128(load_at<std::int32_t>(values, i)));
    out[i] =
        static_cast<std::uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(one, _MM_FROUND_TO_NEAREST_INT)));
  }
}

}  // namespace

void half_to_float(HalfKind kind, const std::uint16_t* values, std::size_t count, float* out) {
  const FloatMode mode(Denormals::kFlushed);
  if (kind == HalfKind::kBfloat16) {
    run_widest<ToFloat<Bfloat16>>(values, count, out);
  } else if (active_instruction_set() == InstructionSet::kSse2) {
    run_sse2<ToFloat<Float16>>(values, count, out);
  } else {
    float16_to_float_f16c(values, count, out);
  }
}

void float_to_half(HalfKind kind, const float* values, std::size_t count, std::uint16_t* out) {
  const FloatMode mode(Denormals::kFlushed);
  if (kind == HalfKind::kBfloat16) {
    run_widest<ToHalf<Bfloat16>>(values, count, out);
  } else if (active_instruction_set() == InstructionSet::kSse2) {
    run_sse2<ToHalf<Float16>>(values, count, out);
  } else {
    float_to_float16_f16c(values, count, out);
  }
}

}  // namespace erar::numeric
