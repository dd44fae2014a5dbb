// Block floating point: float32 values to carry-safe unsigned lanes with a shared exponent, and
// back.
//
// The buffer is cut into exponent blocks of kExponentBlock consecutive elements, counted from the
// buffer's first element. All values of a block share one scale 2^s. A value x becomes the lane
//   q = round_to_nearest_even(x * 2^s) + bias,   bias = 2^(31 - guard_bits)  [as unsigned]
// where guard_bits = ceil(log2 ranks) and s = 157 - guard_bits - exponent, the exponent being the
// largest of all ranks in the block. That is the largest s (for denormals, the s of the smallest
// normal number) that keeps |x| * 2^s <= bias - 1, so that the sum of `ranks` lanes neither
// overflows 32 bits nor carries into the neighbour lane. The sum of the lanes minus ranks * bias,
// times 2^-s, is the result. It is an integer sum, so it does not depend on the order of the ranks.
// A block does not depend on segment size, MTU or pipelining either. Error of a sum: at most
// ranks/2 steps of 2^-s, and then the rounding to float.
//
// The bits depend neither on the instruction set nor on the caller's MXCSR: rounding mode and
// denormal flushing (-ffast-math) are set for the time of a call and put back.
#pragma once

#include "core/numeric/instruction_set.h"  // for callers that name the set in use

#include <cstddef>
#include <cstdint>
#include <span>

namespace erar::numeric {

inline constexpr std::size_t kExponentBlock = 1024;

// An exponent as it travels the ring in a 16-bit lane (max-reduced): 0 for a block of zeros, the
// biased IEEE exponent of the largest magnitude otherwise (denormals count as 1), and 255 when the
// block holds a NaN or an infinity. Being a maximum, it is the same on every rank after the ring.
using Exponent = std::uint16_t;
inline constexpr Exponent kNotFinite = 255;

constexpr std::size_t exponent_count(std::size_t elements) {
  return (elements + kExponentBlock - 1) / kExponentBlock;
}

// exponents[i] = exponent of block i of values. exponents.size() == exponent_count(values.size()).
void block_exponents(std::span<const float> values, std::span<Exponent> exponents);

// Lanes of values under the agreed exponents: none of them kNotFinite, and none below the values'
// own. values and lanes have the same size and are the same memory or do not overlap. 1 <= ranks
// <= 64.
void quantise(std::span<const float> values, std::span<const Exponent> exponents, unsigned ranks,
              std::uint32_t* lanes);

// Both in one pass over cold memory: the values' own exponents, and their lanes under these. Lanes
// of blocks that hold a NaN or an infinity are unspecified. values and lanes do not overlap.
void quantise_by_own_exponents(std::span<const float> values, std::span<Exponent> exponents,
                               unsigned ranks, std::uint32_t* lanes);

// Makes of these the lanes under the agreed exponents, by quantising anew the blocks whose own
// exponent is another: few, where ranks hold values of like magnitude.
void requantise_where_raised(std::span<const float> values, std::span<const Exponent> own,
                             std::span<const Exponent> agreed, unsigned ranks,
                             std::uint32_t* lanes);

// Where a result is wanted. Stores to memory pass the cache by. Measured on a Sapphire Rapids VM,
// groups of 1 MB of lanes in the cache to a buffer of 64 MB: 18 GB/s to memory, 5.5 to the cache;
// of 2 to 16 MB: 18 and 15; of 64 kB: 18 and 33. In memory it must be read from there, so: kMemory
// for large buffers.
enum class Destination { kCache, kMemory };

// Values of summed lanes; values and lanes are the same memory (then destination does not matter)
// or do not overlap. The result is the correctly rounded float of the exact integer sum, +0 if that
// is 0; where it exceeds FLT_MAX it becomes +-infinity as in IEEE addition.
void dequantise(const std::uint32_t* lanes, std::span<const Exponent> exponents, unsigned ranks,
                std::span<float> values, Destination destination = Destination::kCache);

// 2^-s, the step between two values that a block with that exponent can hold; 0 for a block of
// zeros. One rank's lane is at most half a step off its value.
double block_float_step(Exponent exponent, unsigned ranks);

}  // namespace erar::numeric
