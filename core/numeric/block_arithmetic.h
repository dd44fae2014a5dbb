// What the block formats compute alike: guard bits, rounding shifts, powers of two.
#pragma once

#include <bit>
#include <cstdint>

namespace erar::numeric {

// Bits that the sum of `ranks` lanes needs beyond those of one lane: ceil(log2 ranks).
constexpr unsigned guard_bits(unsigned ranks) {
  return static_cast<unsigned>(std::bit_width(ranks - 1));
}

// value / 2^shift rounded to nearest even; 1 <= shift <= 63, value + 2^(shift - 1) < 2^64.
constexpr std::uint64_t shift_rounding(std::uint64_t value, unsigned shift) {
  const std::uint64_t odd = (value >> shift) & 1;
  return (value + (std::uint64_t{1} << (shift - 1)) - 1 + odd) >> shift;
}

// 2^(biased_exponent - 127), the exponent being 1 to 254.
constexpr float float_power_of_two(unsigned biased_exponent) {
  return std::bit_cast<float>(biased_exponent << 23);
}

// 2^(biased_exponent - 1023), the exponent being 1 to 2046.
constexpr double double_power_of_two(unsigned biased_exponent) {
  return std::bit_cast<double>(std::uint64_t{biased_exponent} << 52);
}

}  // namespace erar::numeric
