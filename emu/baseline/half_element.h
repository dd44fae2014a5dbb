// The two 16-bit floats as element types: computed with as float, rounded to nearest even.
//
// Without branches, so that loops over them vectorise; hence no _Float16, of whose conversions GCC
// makes one instruction per element at best.
#pragma once

#include <bit>
#include <cstdint>

namespace erar {

// By masks: of `condition ? a : b` GCC makes a branch where computing one of them could trap.
[[gnu::always_inline]] constexpr std::uint32_t select(bool condition, std::uint32_t yes,
                                                      std::uint32_t no) {
  const std::uint32_t mask = std::uint32_t{0} - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

// IEEE 754 binary16.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;

  [[gnu::always_inline]] explicit Float16(float value) {
    constexpr std::uint32_t kLeastNormal = 113U << 23U;  // 2^-14
    constexpr std::uint32_t kTwoTo16 = 143U << 23U;      // from here on infinity
    constexpr std::uint32_t kInfinity = 255U << 23U;
    constexpr std::uint32_t kHalf = 126U << 23U;  // its last bit is 2^-24, as a denormal's
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = all & 0x7fffffffU;
    const std::uint32_t sign = (all >> 16U) & 0x8000U;
    // The addition rounds to a multiple of 2^-24.
    const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kHalf);
    const std::uint32_t denormal = std::bit_cast<std::uint32_t>(shifted) - kHalf;
    const std::uint32_t odd = (magnitude >> 13U) & 1U;
    const std::uint32_t normal = (magnitude - (112U << 23U) + 0xfffU + odd) >> 13U;
    const std::uint32_t beyond = select(magnitude > kInfinity, 0x7e00U, 0x7c00U);
    const std::uint32_t finite = select(magnitude < kLeastNormal, denormal, normal);
    bits = static_cast<std::uint16_t>(sign | select(magnitude >= kTwoTo16, beyond, finite));
  }

  [[gnu::always_inline]] explicit operator float() const {
    constexpr std::uint32_t kLeastNormal = 113U << 23U;
    const std::uint32_t sign = (bits & 0x8000U) << 16U;
    const std::uint32_t magnitude = (bits & 0x7fffU) << 13U;
    const float shifted =
        std::bit_cast<float>(magnitude + kLeastNormal) - std::bit_cast<float>(kLeastNormal);
    const std::uint32_t normal = magnitude + (112U << 23U);
    const std::uint32_t finite =
        select(magnitude < (1U << 23U), std::bit_cast<std::uint32_t>(shifted), normal);
    const std::uint32_t beyond = magnitude | (255U << 23U);
    return std::bit_cast<float>(sign | select(magnitude >= (31U << 23U), beyond, finite));
  }
};

// The upper half of a binary32.
struct Bfloat16 {
  std::uint16_t bits = 0;

  Bfloat16() = default;

  [[gnu::always_inline]] explicit Bfloat16(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (all + 0x7fffU + ((all >> 16U) & 1U)) >> 16U;
    const std::uint32_t quiet_nan = (all >> 16U) | 0x40U;
    const bool is_nan = (all & 0x7fffffffU) > (255U << 23U);
    bits = static_cast<std::uint16_t>(select(is_nan, quiet_nan, rounded));
  }

  [[gnu::always_inline]] explicit operator float() const {
    return std::bit_cast<float>(std::uint32_t{bits} << 16U);
  }
};

}  // namespace erar
