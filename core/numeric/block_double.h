// Block floating point of doubles: as block_float.h, with float64 values and 64-bit lanes.
//
// A value x of a block with exponent e becomes the lane
//   q = round_to_nearest_even(x * 2^s) + bias,   bias = 2^(63 - guard_bits),
// with s = 1085 - guard_bits - e, the largest s (for denormals, the s of the smallest normal
// number) that keeps |x| * 2^s <= bias - 1. A lane is a whole word, so nothing can carry; the guard
// bits keep the sum of `ranks` lanes below 2^64. Blocks, rounding, order and independence of
// instruction set and MXCSR are as there.
#pragma once

#include "core/numeric/block_float.h"

namespace erar::numeric {

// The exponent of a block that holds a NaN or an infinity.
inline constexpr Exponent kNotFiniteDouble = 2047;

// exponents[i] = exponent of block i of values: 0 for a block of zeros, the biased IEEE exponent of
// the largest magnitude otherwise (denormals count as 1). exponents.size() ==
// exponent_count(values.size()).
void block_exponents(std::span<const double> values, std::span<Exponent> exponents);

// Lanes of values under the agreed exponents: none of them kNotFiniteDouble, and none below the
// values' own. values and lanes have the same size and are the same memory or do not overlap. 1 <=
// ranks <= 64.
void quantise(std::span<const double> values, std::span<const Exponent> exponents, unsigned ranks,
              std::uint64_t* lanes);

// Values of summed lanes; values and lanes are the same memory or do not overlap. The result is the
// correctly rounded double of the exact integer sum times 2^-s, +0 if that is 0; where it exceeds
// DBL_MAX it becomes +-infinity as in IEEE addition.
void dequantise(const std::uint64_t* lanes, std::span<const Exponent> exponents, unsigned ranks,
                std::span<double> values);

// 2^-s, the step between two values that a block with that exponent can hold; 0 for a block of
// zeros. Steps below the least double are given as that, 2^-1074: such blocks hold every double.
double block_double_step(Exponent exponent, unsigned ranks);

}  // namespace erar::numeric
