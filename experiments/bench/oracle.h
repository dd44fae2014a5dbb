// Oracle: says how many elements of a result are wrong, from the seed alone.
#pragma once

#include "core/backend.h"
#include "workloads/generator/values.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace erar::bench {

// The operation whose result is judged: the sum over all ranks of workloads::fill's values.
struct Operation {
  DataType type = DataType::kInt32;
  unsigned ranks = 1;
  std::uint64_t seed = 0;
  workloads::Magnitudes magnitudes = workloads::Magnitudes::kApart;
};

// Elements of the result that are not what the operation's sum may be. int32: exact modulo 2^32.
// float32: within float_sum_bound of the fp64 sum; NaN is wrong.
std::uint64_t count_wrong(const Operation& operation, std::span<const std::byte> result);

// How far a correct float32 result may be from the sum, whichever of the two ways computed it:
// - Block floating point (core/numeric/block_float.h). Each rank rounds its value to a multiple of
// one
//   step, so the integer sum is off by at most ranks/2 steps; its conversion to float rounds once
//   more. With e the biased exponent of the block's largest magnitude and g = ceil(log2 ranks)
//   guard bits, a step is 2^-(157 - g - e).
// - A ring of float additions, in any order: at most ranks - 1 roundings, each of a partial sum
// that
//   is no larger than the sum of magnitudes, hence gamma(ranks - 1) * sum_of_magnitudes with
//   gamma(k) = k u / (1 - k u) and u = 2^-24.
// The bound is the larger of the two. Where block floating point keeps fewer bits than a float (an
// element much smaller than its block's largest) the first decides, otherwise mostly the second.
class FloatSumBound {
 public:
  // largest: the magnitude over all ranks and the whole 1024-element block, finite.
  FloatSumBound(unsigned ranks, float largest);

  // sum: of one element over the ranks, exact but for fp64 rounding; sum_of_magnitudes likewise.
  [[nodiscard]] double of(double sum, double sum_of_magnitudes) const {
    const double magnitude = sum < 0 ? -sum : sum;
    const double block_float = absolute_ + kUnitRoundoff * magnitude;
    const double float_ring = gamma_ * sum_of_magnitudes;
    return block_float > float_ring ? block_float : float_ring;
  }

 private:
  static constexpr double kUnitRoundoff = 0x1p-24;
  double absolute_ = 0;
  double gamma_ = 0;
};

// A 64-bit hash of the bytes, equal on two ranks when (but for 1 chance in 2^64) their bits are.
std::uint64_t hash_bytes(std::span<const std::byte> bytes);

}  // namespace erar::bench
