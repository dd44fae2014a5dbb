// FloatBound: how far from the truth a correct sum or average of floats may be.
//
// u is the type's unit roundoff (float32 2^-24, float64 2^-53, float16 2^-11, bfloat16 2^-8).
// - kBlocks, block floating point: the bound of docs/numerics.md. Each of N ranks rounds its value
//   to a multiple of the block's step, so the integer sum is off by at most N/2 steps. float32 and
//   the 16-bit types as float32: step is the smallest power of two with
//   A / step <= N floor(2^31 / N) - N/2 - 2, where A is the sum over the ranks of their largest
//   magnitudes in the block. float64, and 16-bit lanes (compressed): L = 64 or 16 bits with
//   g = ceil(log2 N) guard bits; with E the exponent of the largest magnitude of all ranks,
//   denormals counting as the least normal number, step = 2^(E - (L - 2 - g)). The conversion of
//   the sum to float32 (float64) rounds, by half an ulp; compressed lanes need none. An average's
//   division rounds once more, and so does the conversion of the result to float16 or bfloat16.
// - The same, compressed: lanes are clamped, so each rank is off by up to a step, and what a rank
//   carried over from the call before on the same buffer, up to a step of that call, is in the sum
//   as well.
// - kRing, additions in the type in any order: N - 1 roundings, for an average one more, each of a
//   partial sum that is no larger than the sum of magnitudes, hence gamma(n) * sum_of_magnitudes
//   with gamma(n) = n u / (1 - n u).
// A pre_scale adds the rounding of each rank's product to either: to float32 for the 16-bit types
// in blocks, to the type otherwise, taken as u times the magnitude. Roundings to a denormal number
// are off by up to half the least one.
#pragma once

#include "core/data_type.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace erar::bench {

// How a backend adds up floats.
enum class Summation { kBlocks, kRing };

// Magnitudes in one block of 1024 elements, all finite, each the product_of() its value.
struct BlockMaxima {
  double largest = 0;       // over all ranks
  double sum = 0;           // over the ranks, of each rank's largest
  double largest_ever = 0;  // what `largest` may have been in calls before on the same buffer
};

// |value * pre_scale|, rounded as it is before it goes into a block.
double product_of(const Reduction& reduction, double value);

class FloatBound {
 public:
  FloatBound(const Reduction& reduction, unsigned ranks, Summation summation,
             const BlockMaxima& maxima);

  // result: of one element, exact but for the rounding of the arithmetic one size up.
  // sum_of_magnitudes: over the ranks, scaled, likewise.
  [[nodiscard]] double of(double result, double sum_of_magnitudes) const {
    const double magnitude = result < 0 ? -result : result;
    double error = absolute_ + relative_ * sum_of_magnitudes;
    error += conversion_.of(magnitude * divisor_ + error);
    error /= divisor_;
    error += division_.of(magnitude + error);
    error += narrowing_.of(magnitude + error);
    return error;
  }

 private:
  // Half an ulp of numbers up to a magnitude; 0 where nothing is rounded.
  struct Rounding {
    double unit = 0;
    double half_denormal = 0;
    [[nodiscard]] double of(double magnitude) const {
      constexpr std::uint64_t kExponentBits = std::uint64_t{0x7ff} << 52U;
      const auto bits = std::bit_cast<std::uint64_t>(magnitude) & kExponentBits;
      return std::max(std::bit_cast<double>(bits) * unit, half_denormal);
    }
  };

  void set_blocks(const Reduction& reduction, unsigned ranks, const BlockMaxima& maxima);
  void set_ring(const Reduction& reduction, unsigned ranks);

  // Before any division: off by this, and by so many magnitudes.
  double absolute_ = 0;
  double relative_ = 0;
  double divisor_ = 1;
  Rounding conversion_;
  Rounding division_;
  Rounding narrowing_;
};

}  // namespace erar::bench
