// Compact lanes: the loops over one block, and the walk over the blocks.
//
// With g guard bits and a block of exponent e, |x| < 2^(e-126) and s = 141 - g - e, so |x * 2^s| <
// 2^(15-g) = bias. A decoded value is exact: its integer has at most 16 bits, and 2^-s >= 2^-140 is
// a multiple of the least denormal.
//
// Blocks with e + g >= 16 are scaled in one multiplication, with denormals flushed: s <= 125, so a
// denormal value or product is below 1/2 and rounds to 0, and no decoded value is denormal.
// In smaller blocks (all magnitudes below 2^-110) denormals count and 2^s may be beyond a float, so
// they are scaled in two steps with denormals kept, each of them exact.
#include "core/numeric/compact_lanes.h"

#include "core/numeric/block_arithmetic.h"
#include "core/numeric/float_mode.h"
#include "core/numeric/per_instruction_set.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace erar::numeric {
namespace {

// An integer of magnitude below 2^22 added to it is the last bits of the sum, in two's complement.
constexpr float kPin = 0x1.8p23F;

template <bool kTwoSteps>
[[gnu::always_inline]] inline float scaled(float value, float scale, float second) {
  const float once = value * scale;
  return kTwoSteps ? once * second : once;
}

template <bool kTwoSteps>
struct Quantise {
  [[gnu::always_inline]] static void run(const float* values, std::size_t count, float scale,
                                         float second, std::uint32_t bias, std::uint16_t* lanes) {
    // Clamped before rounding, which comes to the same: the limit is an integer.
    const auto limit = static_cast<float>(bias - 1);
    const std::uint32_t offset = bias - std::bit_cast<std::uint32_t>(kPin);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      float value = scaled<kTwoSteps>(load_at<float>(values, i), scale, second);
      value = value < limit ? value : limit;
      value = value > -limit ? value : -limit;
      const std::uint32_t lane = std::bit_cast<std::uint32_t>(value + kPin) + offset;
      store_at(lanes, i, static_cast<std::uint16_t>(lane));
    }
  }
};

template <bool kTwoSteps>
struct Dequantise {
  [[gnu::always_inline]] static void run(const std::uint16_t* lanes, std::size_t count,
                                         std::int32_t bias, float scale, float second,
                                         float* values) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const auto sum = static_cast<float>(std::int32_t{load_at<std::uint16_t>(lanes, i)} - bias);
      store_at(values, i, scaled<kTwoSteps>(sum, scale, second));
    }
  }
};

bool needs_two_steps(unsigned exponent, unsigned guard) {
  return exponent != 0 && exponent + guard < 16;
}

// In two steps, 2^s is 2^64 * 2^(s - 64), and 2^-s is 2^-64 * 2^(64 - s).
constexpr float kUp = 0x1p64F;
constexpr float kDown = 0x1p-64F;

}  // namespace

void quantise_compact(std::span<const float> values, std::span<const Exponent> exponents,
                      unsigned ranks, std::uint16_t* lanes) {
  const unsigned guard = guard_bits(ranks);
  const std::uint32_t bias = 0x8000U >> guard;
  const FloatMode mode(Denormals::kFlushed);
  for (std::size_t first = 0; first < values.size(); first += kExponentBlock) {
    const unsigned exponent = exponents[first / kExponentBlock];
    const std::size_t count = std::min(kExponentBlock, values.size() - first);
    const float* from = values.data() + first;
    if (needs_two_steps(exponent, guard)) {
      const FloatMode exact(Denormals::kKept);
      const float second = float_power_of_two(204 - guard - exponent);
      run_widest<Quantise<true>>(from, count, kUp, second, bias, lanes + first);
    } else {
      const float scale = exponent == 0 ? 0.0F : float_power_of_two(268 - guard - exponent);
      run_widest<Quantise<false>>(from, count, scale, 1.0F, bias, lanes + first);
    }
  }
}

void dequantise_compact(const std::uint16_t* lanes, std::span<const Exponent> exponents,
                        unsigned contributors, unsigned ranks, std::span<float> values) {
  const unsigned guard = guard_bits(ranks);
  const auto bias = static_cast<std::int32_t>(contributors * (0x8000U >> guard));
  const FloatMode mode(Denormals::kFlushed);
  for (std::size_t first = 0; first < values.size(); first += kExponentBlock) {
    const unsigned exponent = exponents[first / kExponentBlock];
    const std::size_t count = std::min(kExponentBlock, values.size() - first);
    float* to = values.data() + first;
    if (needs_two_steps(exponent, guard)) {
      const FloatMode exact(Denormals::kKept);
      const float second = float_power_of_two(exponent + guard + 50);
      run_widest<Dequantise<true>>(lanes + first, count, bias, kDown, second, to);
    } else {
      const float scale = exponent == 0 ? 0.0F : float_power_of_two(exponent + guard - 14);
      run_widest<Dequantise<false>>(lanes + first, count, bias, scale, 1.0F, to);
    }
  }
}

double compact_step(Exponent exponent, unsigned ranks) {
  if (exponent == 0) return 0;
  return std::ldexp(1.0, static_cast<int>(exponent + guard_bits(ranks)) - 141);
}

}  // namespace erar::numeric
