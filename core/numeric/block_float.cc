// Block floating point: chooses the instruction set and walks the blocks; the loops over one block
// are in block_float_kernel.h.
//
// With g guard bits and a block of exponent e, |x| <= (2^24 - 1) * 2^(e-150) and s = 157 - g - e,
// so |x * 2^s| <= (2^24 - 1) * 2^(7-g) = bias - 2^(7-g). For g <= 6 that is an integer below bias,
// and rounding, being monotone, cannot pass it. Hence a lane is in [2^(7-g), 2*bias - 2^(7-g)], the
// sum of at most 2^g lanes is below 2^g * 2*bias = 2^32, and the signed sum fits into an int32.
//
// Blocks with e + g >= 32 take the fast path: one multiplication by 2^s (or 2^-s) in float. It
// loses nothing, and denormals may be flushed to zero on the way:
//  - quantise: a denormal value, or a denormal product, is below 1/2 after scaling and rounds to 0;
//    any other product is exact, and the conversion to integer is the only rounding;
//  - dequantise: the conversion of the integer sum to float is the only rounding, since a sum of 1
//    or more times 2^-s >= 2^-125 is a normal number. What overflows becomes infinity, as it must.
// Smaller blocks (all magnitudes below 2^-94) take an exact path in integers.
#include "core/numeric/block_float.h"

#include "core/numeric/block_arithmetic.h"
#include "core/numeric/block_float_kernel.h"
#include "core/numeric/float_mode.h"

#include <xmmintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace erar::numeric {
namespace {

// AVX-512F is all the kernel needs of what InstructionSet::kAvx512 has.
const BlockFloatKernel& active_kernel() {
  switch (active_instruction_set()) {
    case InstructionSet::kAvx512:
      return kBlockFloatAvx512;
    case InstructionSet::kAvx2:
      return kBlockFloatAvx2;
    case InstructionSet::kSse2:
      break;
  }
  return kBlockFloatSse2;
}

bool needs_exact_path(unsigned exponent, unsigned guard) {
  return exponent != 0 && exponent + guard < 32;
}

struct Block {
  unsigned exponent;
  unsigned guard;
  std::size_t count;
};

void quantise_exact(const float* values, Block block, std::uint32_t bias, std::uint32_t* lanes) {
  for (std::size_t i = 0; i < block.count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof bits);
    const std::uint32_t exponent = std::max((bits >> 23) & 0xff, 1U);
    const std::uint64_t mantissa = (bits & 0x7fffff) | ((bits & 0x7f800000) != 0 ? 0x800000 : 0);
    // |x| * 2^s = mantissa * 2^(exponent - 150 + s); one bit more, so that the shift is never 0.
    const std::uint64_t magnitude =
        shift_rounding(mantissa << (8 - block.guard), block.exponent - exponent + 1);
    const auto low = static_cast<std::uint32_t>(magnitude);
    const std::uint32_t lane = bias + ((bits >> 31) != 0 ? 0U - low : low);
    std::memcpy(lanes + i, &lane, sizeof lane);
  }
}

void dequantise_exact(const std::uint32_t* lanes, Block block, std::uint32_t bias, float* values) {
  for (std::size_t i = 0; i < block.count; ++i) {
    std::uint32_t lane = 0;
    std::memcpy(&lane, lanes + i, sizeof lane);
    lane -= bias;
    const bool negative = (lane >> 31) != 0;
    // The magnitude in units of 2^-156: 2^-s = 2^(exponent + guard - 1) of them, below 2^62 in all.
    const std::uint64_t magnitude = std::uint64_t{negative ? 0U - lane : lane}
                                    << (block.exponent + block.guard - 1);
    // Cut to 24 bits, and to multiples of 2^-149 (7 bits), in one rounding. The sum below is the
    // IEEE encoding: a mantissa of 2^23 or more carries into the exponent by itself.
    const unsigned shift = std::max(static_cast<unsigned>(std::bit_width(magnitude)), 31U) - 24;
    const auto mantissa = static_cast<std::uint32_t>(shift_rounding(magnitude, shift));
    const std::uint32_t bits = (((shift - 7) << 23) + mantissa) | (negative ? 0x80000000U : 0U);
    std::memcpy(values + i, &bits, sizeof bits);
  }
}

}  // namespace

void block_exponents(std::span<const float> values, std::span<Exponent> exponents) {
  const BlockFloatKernel& kernel = active_kernel();
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    const std::size_t first = i * kExponentBlock;
    const std::uint32_t magnitude = kernel.max_magnitude(
        values.data() + first, std::min(kExponentBlock, values.size() - first));
    const std::uint32_t exponent = std::max(magnitude >> 23, 1U);
    exponents[i] = static_cast<Exponent>(magnitude == 0 ? 0 : exponent);
  }
}

void quantise(std::span<const float> values, std::span<const Exponent> exponents, unsigned ranks,
              std::uint32_t* lanes) {
  const BlockFloatKernel& kernel = active_kernel();
  const FloatMode mode(Denormals::kFlushed);
  const unsigned guard = guard_bits(ranks);
  const std::uint32_t bias = 0x80000000U >> guard;
  for (std::size_t first = 0; first < values.size(); first += kExponentBlock) {
    const unsigned exponent = exponents[first / kExponentBlock];
    const std::size_t count = std::min(kExponentBlock, values.size() - first);
    if (needs_exact_path(exponent, guard)) {
      quantise_exact(values.data() + first, {exponent, guard, count}, bias, lanes + first);
    } else {
      const float scale = exponent == 0 ? 0.0F : float_power_of_two(284 - guard - exponent);
      kernel.quantise(values.data() + first, count, scale, bias, lanes + first);
    }
  }
}

void quantise_by_own_exponents(std::span<const float> values, std::span<Exponent> exponents,
                               unsigned ranks, std::uint32_t* lanes) {
  for (std::size_t block = 0; block < exponents.size(); ++block) {
    const std::size_t first = block * kExponentBlock;
    const auto part = values.subspan(first, std::min(kExponentBlock, values.size() - first));
    const auto exponent = exponents.subspan(block, 1);
    block_exponents(part, exponent);
    if (exponent[0] != kNotFinite) quantise(part, exponent, ranks, lanes + first);
  }
}

void requantise_where_raised(std::span<const float> values, std::span<const Exponent> own,
                             std::span<const Exponent> agreed, unsigned ranks,
                             std::uint32_t* lanes) {
  for (std::size_t block = 0; block < agreed.size(); ++block) {
    if (own[block] == agreed[block]) continue;
    const std::size_t first = block * kExponentBlock;
    const auto part = values.subspan(first, std::min(kExponentBlock, values.size() - first));
    quantise(part, agreed.subspan(block, 1), ranks, lanes + first);
  }
}

void dequantise(const std::uint32_t* lanes, std::span<const Exponent> exponents, unsigned ranks,
                std::span<float> values, Destination destination) {
  const BlockFloatKernel& kernel = active_kernel();
  const bool in_place = static_cast<const void*>(lanes) == values.data();
  const bool past_cache = destination == Destination::kMemory && !in_place;
  const auto dequantise_block = past_cache ? kernel.dequantise_past_cache : kernel.dequantise;
  const FloatMode mode(Denormals::kFlushed);
  const unsigned guard = guard_bits(ranks);
  const std::uint32_t bias = ranks * (0x80000000U >> guard);
  for (std::size_t first = 0; first < values.size(); first += kExponentBlock) {
    const unsigned exponent = exponents[first / kExponentBlock];
    const std::size_t count = std::min(kExponentBlock, values.size() - first);
    if (needs_exact_path(exponent, guard)) {
      dequantise_exact(lanes + first, {exponent, guard, count}, bias, values.data() + first);
    } else {
      const float scale = exponent == 0 ? 0.0F : float_power_of_two(exponent + guard - 30);
      dequantise_block(lanes + first, count, bias, scale, values.data() + first);
    }
  }
  if (past_cache) _mm_sfence();
}

double block_float_step(Exponent exponent, unsigned ranks) {
  if (exponent == 0) return 0;
  return std::ldexp(1.0, static_cast<int>(exponent + guard_bits(ranks)) - 157);
}

}  // namespace erar::numeric
