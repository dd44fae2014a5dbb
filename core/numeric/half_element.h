// The two 16-bit floats as element types: what half.h promises, of one element and inline.
//
// Without branches, so that loops over them vectorise also where the compiler must think of traps;
// hence no _Float16, of whose conversions GCC makes one instruction per element at best. Magnitudes
// are compared as signed words, as SSE2 and AVX2 do. Denormals of float16 are aligned and rounded
// by a float addition, so these conversions (unlike half.h's) want the default rounding mode;
// denormal float32 may be flushed, as they round to 0 anyway and no float16 becomes one.
#pragma once

#include <bit>
#include <cstdint>

namespace erar::numeric {

namespace half_element {

constexpr std::uint32_t kSign = 0x80000000;
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kQuiet = 0x00400000;

// Bits below are float32's; float16's exponent is biased by 15, float32's by 127.
constexpr std::uint32_t kRebias = (127U - 15U) << 23;
// The least normal float16, 2^-14, and what no float16 below infinity reaches, 2^16.
constexpr std::uint32_t kLeastNormal = 113U << 23;
constexpr std::uint32_t kBeyond = 143U << 23;
// 2^-1: its last bit counts 2^-24, as the last bit of a denormal float16 does.
constexpr std::uint32_t kDenormalUnit = 126U << 23;

// By masks: of `condition ? a : b` GCC makes a branch where computing one of them could trap.
[[gnu::always_inline]] constexpr std::uint32_t select(bool condition, std::uint32_t yes,
                                                      std::uint32_t no) {
  const std::uint32_t mask = std::uint32_t{0} - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

// Of bits below 2^31.
[[gnu::always_inline]] constexpr bool less(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
}

}  // namespace half_element

// IEEE 754 binary16.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;

  [[gnu::always_inline]] constexpr explicit Float16(float value) {
    using namespace half_element;
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (all >> 16) & 0x8000;
    const std::uint32_t magnitude = all & ~kSign;
    // The addition rounds to units of 2^-24; the sum's bits are the float16's above those of 2^-1.
    const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kDenormalUnit);
    const std::uint32_t denormal = std::bit_cast<std::uint32_t>(shifted) - kDenormalUnit;
    // Half a unit, and what makes the tie even. A carry out of the largest number is infinity.
    const std::uint32_t normal = (magnitude - kRebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    const std::uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    const std::uint32_t beyond = select(less(kInfinity, magnitude), nan, 0x7c00);
    const std::uint32_t finite = select(less(magnitude, kLeastNormal), denormal, normal);
    bits = static_cast<std::uint16_t>(sign | select(less(magnitude, kBeyond), finite, beyond));
  }

  [[gnu::always_inline]] constexpr explicit operator float() const {
    using namespace half_element;
    const std::uint32_t sign = (std::uint32_t{bits} & 0x8000) << 16;
    const std::uint32_t magnitude = (std::uint32_t{bits} & 0x7fff) << 13;
    // A denormal is its mantissa in units of 2^-24: as the mantissa of a number from 2^-14 on it
    // is that much above 2^-14.
    const float denormal =
        std::bit_cast<float>(magnitude + kLeastNormal) - std::bit_cast<float>(kLeastNormal);
    const std::uint32_t finite = select(
        less(magnitude, 1U << 23), std::bit_cast<std::uint32_t>(denormal), magnitude + kRebias);
    const std::uint32_t quiet = select((bits & 0x3ff) != 0, kQuiet, 0);
    const std::uint32_t beyond = magnitude | kInfinity | quiet;
    return std::bit_cast<float>(sign | select(less(magnitude, 31U << 23), finite, beyond));
  }
};

// The upper half of a binary32.
struct Bfloat16 {
  std::uint16_t bits = 0;

  Bfloat16() = default;

  [[gnu::always_inline]] constexpr explicit Bfloat16(float value) {
    using namespace half_element;
    const auto all = std::bit_cast<std::uint32_t>(value);
    // Half a unit, and what makes the tie even. A carry out of the largest number is infinity.
    const std::uint32_t rounded = all + 0x7fff + ((all >> 16) & 1);
    const bool nan = less(kInfinity, all & ~kSign);
    bits = static_cast<std::uint16_t>(select(nan, all | kQuiet, rounded) >> 16);
  }

  [[gnu::always_inline]] constexpr explicit operator float() const {
    using namespace half_element;
    const std::uint32_t all = std::uint32_t{bits} << 16;
    const bool nan = less(kInfinity, all & ~kSign);
    return std::bit_cast<float>(all | select(nan, kQuiet, 0));
  }
};

}  // namespace erar::numeric
