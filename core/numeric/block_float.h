// Block floating point: float32 values to lanes with a shared scale, and back.
//
// The buffer is cut into exponent blocks of kExponentBlock consecutive elements, counted from the
// buffer's first element. All values of a block share one scale 2^s, which follows from the sum A
// over all ranks of the block's largest magnitude: no element's sum can be larger. A value x
// becomes the lane
//   q = round_to_nearest_even(x * 2^s) + bias,   bias = floor(2^31 / ranks)
// as a signed number, and two lanes the 64-bit word low + high * 2^32, in which a negative low lane
// borrows from the high one. s is the largest integer with A' * 2^s <= ranks * bias - ranks / 2 -
// 2, where A' is A in double precision, made larger by a 2^-48th so that rounding cannot make it
// too small. So a sum of words has both lanes in 0 .. 2^32 - 1, whatever the words on the way. The
// sum of the lanes minus ranks * bias, times 2^-s, is the result. It is an integer sum, so it does
// not depend on the order of the ranks. A block does not depend on segment size, MTU or pipelining
// either.
// Error of a sum: at most ranks/2 steps of 2^-s, where a step is no more than A * 2^-30 and a
// trifle, A * 2^-30 * (1 + 2^-24), and then the rounding to float.
//
// The bits depend neither on the instruction set nor on the caller's MXCSR: rounding mode and
// denormal flushing (-ffast-math) are set for the time of a call and put back.
#pragma once

#include "core/numeric/instruction_set.h"  // for callers that name the set in use

#include <array>
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

// What the ranks agree on for a block: the sum of their largest magnitudes, exactly. It is the sum
// over b of word b * 2^(32 b - 150); a float's 24 bits and a sum over 64 ranks never leave a word,
// so the words of several ranks are added as they are, in any order.
struct MagnitudeSum {
  std::array<std::uint64_t, 8> words{};
  bool operator==(const MagnitudeSum&) const = default;
};

// maxima[i] = largest magnitude of block i, 0 where it holds a NaN or an infinity: then the
// function returns false. maxima.size() == exponent_count(values.size()).
bool block_maxima(std::span<const float> values, std::span<MagnitudeSum> maxima);

// s of a block, or kAllZero where all ranks' values are 0. A function of the words alone.
using BlockScale = std::int16_t;
inline constexpr BlockScale kAllZero = -1000;
BlockScale scale_of(const MagnitudeSum& sum, unsigned ranks);

// Lanes of values under the agreed scales. values and lanes have the same size and are the same
// memory or do not overlap. 1 <= ranks <= 64. Values are finite, and no larger than what the scale
// was made of; lanes of others are unspecified.
void quantise(std::span<const float> values, std::span<const BlockScale> scales, unsigned ranks,
              std::uint32_t* lanes);

// Where a result is wanted. Stores to memory pass the cache by. Measured on a Sapphire Rapids VM,
// groups of 1 MB of lanes in the cache to a buffer of 64 MB: 18 GB/s to memory, 5.5 to the cache;
// of 2 to 16 MB: 18 and 15; of 64 kB: 18 and 33. In memory it must be read from there, so: kMemory
// for large buffers.
enum class Destination { kCache, kMemory };

// Values of summed lanes; values and lanes are the same memory (then destination does not matter)
// or do not overlap. The result is the correctly rounded float of the exact integer sum, +0 if that
// is 0; where it exceeds FLT_MAX it becomes +-infinity as in IEEE addition. The exact sum of the
// values may then be below FLT_MAX, by ranks/2 steps at most.
void dequantise(const std::uint32_t* lanes, std::span<const BlockScale> scales, unsigned ranks,
                std::span<float> values, Destination destination = Destination::kCache);

// 2^-s, the step between two values that a block of that scale can hold; 0 for kAllZero. One rank's
// lane is at most half a step off its value.
double block_float_step(BlockScale scale);

}  // namespace erar::numeric
