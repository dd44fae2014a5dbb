// Compact lanes: float32 values to 16-bit lanes, four in a 64-bit word, under block_float.h's
// exponents.
//
// A value x of a block with exponent e becomes the lane
//   q = clamp(round_to_nearest_even(x * 2^s), -(bias - 1), bias - 1) + bias,
//   bias = 2^(15 - guard_bits),   s = 141 - guard_bits - e.
// With this s every |x| * 2^s is below bias; only one above bias - 1/2 would round up to bias, and
// is clamped. One bit less in s would need no clamping and halve the precision of every other
// value. A lane is in [1, 2*bias - 1], so the sum of `ranks` of them neither overflows 16 bits nor
// carries into the neighbour lane. Error of one lane: at most half a step of 2^-s, or below one
// step where clamped.
//
// The bits depend neither on the instruction set nor on the caller's MXCSR.
#pragma once

#include "core/numeric/block_float.h"

namespace erar::numeric {

// Lanes of values under the agreed exponents: none of them kNotFinite, and none below the values'
// own. values and lanes do not overlap. 1 <= ranks <= 64.
void quantise_compact(std::span<const float> values, std::span<const Exponent> exponents,
                      unsigned ranks, std::uint16_t* lanes);

// values[i] = (lanes[i] - contributors * bias) * 2^-s, exactly: of the sum of all lanes with
// contributors == ranks, of one rank's own lane with contributors == 1. Above FLT_MAX, as only a
// sum can be, it is +-infinity. 1 <= contributors <= ranks. values and lanes do not overlap.
void dequantise_compact(const std::uint16_t* lanes, std::span<const Exponent> exponents,
                        unsigned contributors, unsigned ranks, std::span<float> values);

// 2^-s, the step between two values that a block with that exponent can hold; 0 for a block of
// zeros.
double compact_step(Exponent exponent, unsigned ranks);

}  // namespace erar::numeric
