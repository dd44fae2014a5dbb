// Block floating point: chooses the instruction set and walks the blocks; the loops over one block
// are in block_float_kernel.h.
//
// Blocks with s <= 125 take the fast path: one multiplication by 2^s (or 2^-s) in float. It loses
// nothing, and denormals may be flushed to zero on the way:
//  - quantise: a denormal value, or a denormal product, is below 1/2 after scaling and rounds to 0
//    (a normal float times 2^s is below the smallest normal number only where s is negative; a
//    denormal times 2^125 is below 1/2); any other product is exact, and the conversion to integer
//    is the only rounding;
//  - dequantise: the conversion of the integer sum to float is the only rounding, since a sum of 1
//    or more times 2^-s >= 2^-125 is a normal number. What overflows becomes infinity, as it must.
// Smaller blocks (all magnitudes below 2^-94) go through doubles, which hold x * 2^s exactly.
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

constexpr BlockScale kLargestFastScale = 125;

std::uint32_t bias_of(unsigned ranks) { return 0x80000000U / ranks; }

// A factor of 2^s, s from -126 to 127; 0 for a block of zeros.
float factor_of(int scale) {
  return scale == kAllZero ? 0.0F : float_power_of_two(static_cast<unsigned>(127 + scale));
}

void quantise_small(const float* values, std::size_t count, int scale, std::uint32_t bias,
                    std::uint32_t* lanes) {
  const double factor = double_power_of_two(static_cast<unsigned>(1023 + scale));
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, values + i, sizeof value);
    const std::int64_t lane = std::llrint(static_cast<double>(value) * factor) + bias - borrow;
    const auto low = static_cast<std::uint32_t>(lane);
    std::memcpy(lanes + i, &low, sizeof low);
    borrow = i % 2 == 0 && lane < 0 ? 1 : 0;
  }
}

void dequantise_small(const std::uint32_t* lanes, std::size_t count, std::uint32_t bias, int scale,
                      float* values) {
  const double factor = double_power_of_two(static_cast<unsigned>(1023 - scale));
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t lane = 0;
    std::memcpy(&lane, lanes + i, sizeof lane);
    const auto sum = static_cast<std::int32_t>(lane - bias);
    // The product is exact, and its conversion, to a denormal perhaps, is the only rounding.
    const auto value = static_cast<float>(static_cast<double>(sum) * factor);
    std::memcpy(values + i, &value, sizeof value);
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

bool block_maxima(std::span<const float> values, std::span<MagnitudeSum> maxima) {
  const BlockFloatKernel& kernel = active_kernel();
  bool finite = true;
  for (std::size_t i = 0; i < maxima.size(); ++i) {
    const std::size_t first = i * kExponentBlock;
    const std::uint32_t magnitude = kernel.max_magnitude(
        values.data() + first, std::min(kExponentBlock, values.size() - first));
    maxima[i] = {};
    if (magnitude >> 23 == kNotFinite) {
      finite = false;
      continue;
    }
    // |x| = mantissa * 2^(exponent - 150); denormals have the exponent 1.
    const std::uint32_t exponent = std::max(magnitude >> 23, 1U);
    const std::uint64_t mantissa =
        (magnitude & 0x7fffff) | ((magnitude & 0x7f800000) != 0 ? 0x800000 : 0);
    maxima[i].words[exponent / 32] = mantissa << (exponent % 32);
  }
  return finite;
}

BlockScale scale_of(const MagnitudeSum& sum, unsigned ranks) {
  const FloatMode mode(Denormals::kKept);
  double total = 0;
  for (int b = 7; b >= 0; --b)
    total += static_cast<double>(sum.words[static_cast<std::size_t>(b)]) *
             double_power_of_two(static_cast<unsigned>(1023 + 32 * b - 150));
  if (total == 0) return kAllZero;
  // Conversions and additions have rounded 16 times, by 2^-53 at most.
  total *= 1 + 0x1p-48;
  const double limit = static_cast<double>(ranks) * bias_of(ranks) - ranks / 2.0 - 2;
  int power = 0;
  const double mantissa = std::frexp(total, &power);
  const int scale = 31 - power;
  return static_cast<BlockScale>(mantissa * 0x1p31 <= limit ? scale : scale - 1);
}

void quantise(std::span<const float> values, std::span<const BlockScale> scales, unsigned ranks,
              std::uint32_t* lanes) {
  const BlockFloatKernel& kernel = active_kernel();
  const std::uint32_t bias = bias_of(ranks);
  for (std::size_t first = 0; first < values.size(); first += kExponentBlock) {
    const BlockScale scale = scales[first / kExponentBlock];
    const std::size_t count = std::min(kExponentBlock, values.size() - first);
    if (scale > kLargestFastScale) {
      const FloatMode mode(Denormals::kKept);
      quantise_small(values.data() + first, count, scale, bias, lanes + first);
    } else {
      const FloatMode mode(Denormals::kFlushed);
      kernel.quantise(values.data() + first, count, factor_of(scale), bias, lanes + first);
    }
  }
}

void dequantise(const std::uint32_t* lanes, std::span<const BlockScale> scales, unsigned ranks,
                std::span<float> values, Destination destination) {
  const BlockFloatKernel& kernel = active_kernel();
  const bool in_place = static_cast<const void*>(lanes) == values.data();
  const bool past_cache = destination == Destination::kMemory && !in_place;
  const auto dequantise_block = past_cache ? kernel.dequantise_past_cache : kernel.dequantise;
  const std::uint32_t bias = ranks * bias_of(ranks);
  for (std::size_t first = 0; first < values.size(); first += kExponentBlock) {
    const BlockScale scale = scales[first / kExponentBlock];
    const std::size_t count = std::min(kExponentBlock, values.size() - first);
    if (scale > kLargestFastScale) {
      const FloatMode mode(Denormals::kKept);
      dequantise_small(lanes + first, count, bias, scale, values.data() + first);
    } else {
      const FloatMode mode(Denormals::kFlushed);
      const float factor = scale == kAllZero ? 0.0F : factor_of(-scale);
      dequantise_block(lanes + first, count, bias, factor, values.data() + first);
    }
  }
  if (past_cache) _mm_sfence();
}

double block_float_step(BlockScale scale) {
  return scale == kAllZero ? 0 : std::ldexp(1.0, -scale);
}

}  // namespace erar::numeric
