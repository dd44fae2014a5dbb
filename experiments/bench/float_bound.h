// FloatBound: how far from the truth a correct sum or average of floats may be.
//
// The larger of what the two ways to compute it may be off by, whichever was taken; u is the type's
// unit roundoff (float32 2^-24, float64 2^-53, float16 2^-11, bfloat16 2^-8):
// - Block floating point (core/numeric). Lanes of L bits (64 for float64, 16 where compressed, 32
//   otherwise) with g = ceil(log2 ranks) guard bits; with E the exponent of the block's largest
//   magnitude, denormals counting as the least normal number, a step is 2^(E - (L - 2 - g)). Each
//   rank rounds its value to a multiple of a step, so the integer sum is off by at most ranks/2
//   steps. Its conversion to float (float64) rounds, an average's division does so once more, and
//   float16 and bfloat16 are rounded to from that float.
// - The same, compressed: lanes are clamped, so each rank is off by up to a step, and what a rank
//   carried over from the call before on the same buffer, up to a step of that call, is in the sum
//   as well.
// - A ring of additions in the type, in any order: ranks - 1 roundings, for an average one more,
// each
//   of a partial sum that is no larger than the sum of magnitudes, hence gamma(n) *
//   sum_of_magnitudes with gamma(n) = n u / (1 - n u).
// A pre_scale adds the rounding of each rank's product to either. Where block floating point keeps
// fewer bits than the type (an element much smaller than its block's largest) the first decides,
// otherwise mostly the second. Roundings to a denormal number are off by up to half the least one.
#pragma once

#include "core/data_type.h"

namespace erar::bench {

class FloatBound {
 public:
  // largest: the magnitude over all ranks and the whole 1024-element block before any scaling,
  // finite. largest_ever: what it may have been in calls before on the same buffer.
  FloatBound(const Reduction& reduction, unsigned ranks, double largest, double largest_ever);

  // result: of one element, exact but for the rounding of the arithmetic one size up.
  // sum_of_magnitudes: over the ranks, scaled, likewise.
  [[nodiscard]] double of(double result, double sum_of_magnitudes) const {
    const double magnitude = result < 0 ? -result : result;
    const double block = absolute_ + relative_ * magnitude + scaled_ * sum_of_magnitudes;
    const double ring = gamma_ * sum_of_magnitudes + underflow_;
    return block > ring ? block : ring;
  }

 private:
  double absolute_ = 0;
  double relative_ = 0;
  double scaled_ = 0;
  double gamma_ = 0;
  double underflow_ = 0;
};

}  // namespace erar::bench
