// Block floating point of doubles: the loops over one block, and the walk over the blocks.
//
// With g guard bits and a block of exponent e, |x| <= (2^53 - 1) * 2^(e-1075) and s = 1085 - g - e,
// so |x * 2^s| <= (2^53 - 1) * 2^(10-g) = bias - 2^(10-g): for g <= 6 an integer below bias, which
// rounding, being monotone, cannot pass. Hence the sum of at most 2^g lanes is below 2^g * 2*bias =
// 2^64, and the signed sum fits into an int64.
//
// SSE2 and AVX2 convert no 64-bit integers in vectors. So both ways go through 32-bit halves, which
// the mantissa of a double holds beside a power of two that pins the place of its last bit.
//
// Blocks with e + g >= 64 take this fast path. It loses nothing, and denormals may be flushed:
//  - quantise: s <= 1021, so a denormal value, or a denormal product, is below 1/2 after scaling
//    and rounds to 0; any other product is exact;
//  - dequantise: a sum of 1 or more times 2^-s >= 2^-1021 is a normal number, so the conversion of
//    the sum is the only rounding.
// Smaller blocks (all magnitudes below 2^-958) take an exact path in integers.
#include "core/numeric/block_double.h"

#include "core/numeric/block_arithmetic.h"
#include "core/numeric/float_mode.h"
#include "core/numeric/per_instruction_set.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

namespace erar::numeric {
namespace {

constexpr double k2To32 = 0x1p32;
// An integer of magnitude below 2^51 added to it is the last bits of the sum, in two's complement.
constexpr double kPin = 0x1.8p52;

struct Largest {
  std::uint32_t upper_half;  // of the largest magnitude's bits: ordered as the exponents are
  bool all_zero;
};

struct FindLargest {
  [[gnu::always_inline]] static Largest run(const double* values, std::size_t count) {
    std::int32_t largest = 0;
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t magnitude = load_at<std::uint64_t>(values, i) << 1 >> 1;
      const auto upper_half = static_cast<std::int32_t>(magnitude >> 32);
      largest = upper_half > largest ? upper_half : largest;
      any |= magnitude;
    }
    return {static_cast<std::uint32_t>(largest), any == 0};
  }
};

// lanes[i] = round(values[i] * scale) + bias
struct Quantise {
  [[gnu::always_inline]] static void run(const double* values, std::size_t count, double scale,
                                         std::uint64_t bias, std::uint64_t* lanes) {
    // The pin's bits, which are 0 in the lower half, fall out of the upper half's by the shift.
    const std::uint64_t offset = bias - std::bit_cast<std::uint64_t>(kPin);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const double scaled = load_at<double>(values, i) * scale;
      // To the nearest multiple of 2^32, an even number; so what is left, at most 2^31 of either
      // sign and exact, rounds as the whole would.
      const double upper_pinned = scaled * (1 / k2To32) + kPin;
      const double left = scaled - (upper_pinned - kPin) * k2To32;
      const auto upper = std::bit_cast<std::uint64_t>(upper_pinned) << 32;
      const auto lower = std::bit_cast<std::uint64_t>(left + kPin);
      store_at(lanes, i, upper + lower + offset);
    }
  }
};

// values[i] = double(int64(lanes[i] - bias)) * scale
struct Dequantise {
  [[gnu::always_inline]] static void run(const std::uint64_t* lanes, std::size_t count,
                                         std::uint64_t bias, double scale, double* values) {
    constexpr double kLowerPin = 0x1p52;
    constexpr double kUpperPin = 0x1p84;  // its last bit counts 2^32
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t shifted = (load_at<std::uint64_t>(lanes, i) - bias) ^ kSign;  // + 2^63
      const auto lower =
          std::bit_cast<double>((shifted & 0xffffffff) | std::bit_cast<std::uint64_t>(kLowerPin));
      const auto upper =
          std::bit_cast<double>((shifted >> 32) | std::bit_cast<std::uint64_t>(kUpperPin));
      // The difference is exact, a multiple of 2^32 below 2^64; the sum is the one rounding.
      const double sum = (upper - (kUpperPin + 0x1p63 + kLowerPin)) + lower;
      store_at(values, i, sum * scale);
    }
  }
};

struct Block {
  unsigned exponent;
  unsigned guard;
  std::size_t count;
};

bool needs_exact_path(unsigned exponent, unsigned guard) {
  return exponent != 0 && exponent + guard < 64;
}

void quantise_exact(const double* values, Block block, std::uint64_t bias, std::uint64_t* lanes) {
  for (std::size_t i = 0; i < block.count; ++i) {
    const auto bits = load_at<std::uint64_t>(values, i);
    const auto field = static_cast<unsigned>(bits >> 52) & 0x7ff;
    const std::uint64_t mantissa =
        (bits << 12 >> 12) | (field != 0 ? std::uint64_t{1} << 52 : std::uint64_t{0});
    // |x| * 2^s = mantissa * 2^(10 - guard) / 2^shift, the shift being at most 62.
    const std::uint64_t widened = mantissa << (10 - block.guard);
    const unsigned shift = block.exponent - std::max(field, 1U);
    const std::uint64_t magnitude = shift == 0 ? widened : shift_rounding(widened, shift);
    store_at(lanes, i, bias + ((bits >> 63) != 0 ? 0 - magnitude : magnitude));
  }
}

void dequantise_exact(const std::uint64_t* lanes, Block block, std::uint64_t bias, double* values) {
  // Powers of two that the last bit of an integer sum, and of a denormal double, count.
  const int unit = static_cast<int>(block.exponent + block.guard) - 1085;
  constexpr int kLeast = -1074;
  for (std::size_t i = 0; i < block.count; ++i) {
    const std::uint64_t sum = load_at<std::uint64_t>(lanes, i) - bias;
    const std::uint64_t sign = sum >> 63 << 63;
    const std::uint64_t magnitude = sign != 0 ? 0 - sum : sum;
    // What the result's last bit counts: of a 53-bit mantissa, or the least there is.
    const int last = std::max(static_cast<int>(std::bit_width(magnitude)) - 53 + unit, kLeast);
    const int shift = last - unit;
    const std::uint64_t mantissa = shift > 0
                                       ? shift_rounding(magnitude, static_cast<unsigned>(shift))
                                       : magnitude << static_cast<unsigned>(-shift);
    // The sum is the IEEE encoding: a mantissa of 2^52 or more carries into the exponent by itself.
    const auto exponent = static_cast<std::uint64_t>(last - kLeast);
    store_at(values, i, ((exponent << 52) + mantissa) | sign);
  }
}

}  // namespace

void block_exponents(std::span<const double> values, std::span<Exponent> exponents) {
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    const std::size_t first = i * kExponentBlock;
    const Largest largest = run_widest<FindLargest>(
        values.data() + first, std::min(kExponentBlock, values.size() - first));
    const std::uint32_t exponent = std::max(largest.upper_half >> 20, 1U);
    exponents[i] = static_cast<Exponent>(largest.all_zero ? 0 : exponent);
  }
}

void quantise(std::span<const double> values, std::span<const Exponent> exponents, unsigned ranks,
              std::uint64_t* lanes) {
  const FloatMode mode(Denormals::kFlushed);
  const unsigned guard = guard_bits(ranks);
  const std::uint64_t bias = (std::uint64_t{1} << 63) >> guard;
  for (std::size_t first = 0; first < values.size(); first += kExponentBlock) {
    const unsigned exponent = exponents[first / kExponentBlock];
    const std::size_t count = std::min(kExponentBlock, values.size() - first);
    if (needs_exact_path(exponent, guard)) {
      quantise_exact(values.data() + first, {exponent, guard, count}, bias, lanes + first);
    } else {
      const double scale = exponent == 0 ? 0.0 : double_power_of_two(2108 - guard - exponent);
      run_widest<Quantise>(values.data() + first, count, scale, bias, lanes + first);
    }
  }
}

void dequantise(const std::uint64_t* lanes, std::span<const Exponent> exponents, unsigned ranks,
                std::span<double> values) {
  const FloatMode mode(Denormals::kFlushed);
  const unsigned guard = guard_bits(ranks);
  const std::uint64_t bias = ranks * ((std::uint64_t{1} << 63) >> guard);
  for (std::size_t first = 0; first < values.size(); first += kExponentBlock) {
    const unsigned exponent = exponents[first / kExponentBlock];
    const std::size_t count = std::min(kExponentBlock, values.size() - first);
    if (needs_exact_path(exponent, guard)) {
      dequantise_exact(lanes + first, {exponent, guard, count}, bias, values.data() + first);
    } else {
      const double scale = exponent == 0 ? 0.0 : double_power_of_two(exponent + guard - 62);
      run_widest<Dequantise>(lanes + first, count, bias, scale, values.data() + first);
    }
  }
}

double block_double_step(Exponent exponent, unsigned ranks) {
  if (exponent == 0) return 0;
  return std::max(std::ldexp(1.0, static_cast<int>(exponent + guard_bits(ranks)) - 1085),
                  DBL_TRUE_MIN);
}

}  // namespace erar::numeric
