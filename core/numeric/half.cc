// 16-bit floats: bfloat16 in integers; float16 by F16C, and without it in integers but for the
// denormals, which a float addition aligns and rounds.
//
// Both ways to convert float16 give the same bits, NaNs included. Denormal float32 may be flushed:
// as a float16 they round to 0 anyway, and no float16 becomes one.
#include "core/numeric/half.h"

#include "core/numeric/float_mode.h"
#include "core/numeric/per_instruction_set.h"

#include <immintrin.h>

#include <bit>

namespace erar::numeric {
namespace {

constexpr std::uint32_t kSign = 0x80000000;
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kQuiet = 0x00400000;

// Bits below are float32's; float16's exponent is biased by 15, float32's by 127.
constexpr std::uint32_t kRebias = (127U - 15U) << 23;
constexpr std::uint32_t kHalfInfinity = 0x7c00;
// The least normal float16, 2^-14, and what no float16 below infinity reaches, 2^16.
constexpr std::uint32_t kLeastNormal = 113U << 23;
constexpr std::uint32_t kBeyond = 143U << 23;
// 2^-1: its last bit counts 2^-24, as the last bit of a denormal float16 does.
constexpr std::uint32_t kDenormalUnit = 126U << 23;

struct Bfloat16ToFloat {
  [[gnu::always_inline]] static void run(const std::uint16_t* values, std::size_t count,
                                         float* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = std::uint32_t{load_at<std::uint16_t>(values, i)} << 16;
      const bool nan = static_cast<std::int32_t>(bits & ~kSign) > std::int32_t{kInfinity};
      store_at(out, i, bits | (nan ? kQuiet : 0));
    }
  }
};

struct FloatToBfloat16 {
  [[gnu::always_inline]] static void run(const float* values, std::size_t count,
                                         std::uint16_t* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = load_at<std::uint32_t>(values, i);
      const bool nan = static_cast<std::int32_t>(bits & ~kSign) > std::int32_t{kInfinity};
      // Half a unit, and what makes the tie even. A carry out of the largest number is infinity.
      const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
      store_at(out, i, static_cast<std::uint16_t>((nan ? bits | kQuiet : rounded) >> 16));
    }
  }
};

struct Float16ToFloat {
  [[gnu::always_inline]] static void run(const std::uint16_t* values, std::size_t count,
                                         float* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const auto half = static_cast<std::uint32_t>(load_at<std::uint16_t>(values, i));
      const std::uint32_t sign = (half & 0x8000) << 16;
      const auto magnitude = static_cast<std::int32_t>((half & 0x7fff) << 13);
      const auto shifted = static_cast<std::uint32_t>(magnitude);
      // A denormal is its mantissa in units of 2^-24: as the mantissa of a number from 2^-14 on
      // it is that much above 2^-14.
      const float denormal = std::bit_cast<float>(shifted + kLeastNormal) -
                             std::bit_cast<float>(std::uint32_t{kLeastNormal});
      const std::uint32_t special =
          shifted | kInfinity | ((half & 0x3ff) != 0 ? kQuiet : std::uint32_t{0});
      std::uint32_t bits = shifted + kRebias;
      bits = magnitude < (1 << 23) ? std::bit_cast<std::uint32_t>(denormal) : bits;
      bits = magnitude >= (31 << 23) ? special : bits;
      store_at(out, i, bits | sign);
    }
  }
};

struct FloatToFloat16 {
  [[gnu::always_inline]] static void run(const float* values, std::size_t count,
                                         std::uint16_t* out) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = load_at<std::uint32_t>(values, i);
      const std::uint32_t sign = (bits >> 16) & 0x8000;
      const std::uint32_t positive = bits & ~kSign;
      const auto magnitude = static_cast<std::int32_t>(positive);
      // The addition rounds to units of 2^-24; the sum's bits are the float16's above those of
      // 2^-1.
      const float denormal =
          std::bit_cast<float>(positive) + std::bit_cast<float>(std::uint32_t{kDenormalUnit});
      // Half a unit, and what makes the tie even. A carry out of the largest number is infinity.
      const std::uint32_t rounded = (positive - kRebias + 0xfff + ((positive >> 13) & 1)) >> 13;
      const std::uint32_t nan = 0x7e00 | ((positive >> 13) & 0x3ff);
      std::uint32_t half = rounded;
      half = magnitude < std::int32_t{kLeastNormal}
                 ? std::bit_cast<std::uint32_t>(denormal) - kDenormalUnit
                 : half;
      half = magnitude >= std::int32_t{kBeyond} ? kHalfInfinity : half;
      half = magnitude > std::int32_t{kInfinity} ? nan : half;
      store_at(out, i, static_cast<std::uint16_t>(half | sign));
    }
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
    run_widest<Bfloat16ToFloat>(values, count, out);
  } else if (active_instruction_set() == InstructionSet::kSse2) {
    run_sse2<Float16ToFloat>(values, count, out);
  } else {
    float16_to_float_f16c(values, count, out);
  }
}

void float_to_half(HalfKind kind, const float* values, std::size_t count, std::uint16_t* out) {
  const FloatMode mode(Denormals::kFlushed);
  if (kind == HalfKind::kBfloat16) {
    run_widest<FloatToBfloat16>(values, count, out);
  } else if (active_instruction_set() == InstructionSet::kSse2) {
    run_sse2<FloatToFloat16>(values, count, out);
  } else {
    float_to_float16_f16c(values, count, out);
  }
}

}  // namespace erar::numeric
