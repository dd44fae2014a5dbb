// The error bounds of both ways to reduce floats, from the types' formats and the documents.
//
// Written without core/numeric, whose scales it judges.
#include "experiments/bench/float_bound.h"

#include <cmath>

namespace erar::bench {
namespace {

struct Format {
  double unit;           // unit roundoff
  double half_denormal;  // half of the least denormal number
  int least_exponent;    // of a normal number
};

constexpr Format kBinary32{0x1p-24, 0x1p-150, -126};
// Half of the least denormal float64 is no float64; the whole is a bound as well.
constexpr Format kBinary64{0x1p-53, 0x1p-1074, -1022};

// A product may be rounded by way of a wider type.
constexpr double kRoundedTwice = 1 + 0x1p-10;
// The truth about float32 is a sum of up to 64 doubles. Its error is below 2^-47 of A, which is
// 2^-21 of ranks/2 steps of more than A * 2^-31 each.
constexpr double kTruthIsRounded = 1 + 0x1p-20;
// What core/numeric adds to A so that its own rounding cannot make it too small, and our rounding.
constexpr double kSumIsRounded = 1 + 0x1p-47;

Format format_of(DataType type) {
  if (type == DataType::kFloat64) return kBinary64;
  if (type == DataType::kFloat16) return {0x1p-11, 0x1p-25, -14};
  if (type == DataType::kBfloat16) return {0x1p-8, 0x1p-134, -126};
  return kBinary32;
}

// What lanes are converted to.
Format real_format_of(DataType type) { return type == DataType::kFloat64 ? kBinary64 : kBinary32; }

double gamma(unsigned roundings, double unit) {
  const double product = roundings * unit;
  return product / (1 - product);
}

// From the sum over the ranks of their largest magnitudes.
double shared_step(double sum, unsigned ranks) {
  const double bias = std::floor(0x1p31 / ranks);
  const double limit = ranks * bias - ranks / 2.0 - 2;
  int power = 0;
  const double mantissa = std::frexp(sum * kSumIsRounded, &power);
  return std::ldexp(1.0, mantissa * 0x1p31 <= limit ? power - 31 : power - 30);
}

// From the largest magnitude of all ranks.
double guarded_step(double largest, unsigned ranks, int lane_bits, int least_exponent) {
  const int guard_bits = static_cast<int>(std::bit_width(ranks - 1));
  const int exponent = std::max(std::ilogb(largest), least_exponent);
  return std::ldexp(1.0, exponent - (lane_bits - 2 - guard_bits));
}

// What all ranks together round off, in the sum.
double quantised(const Reduction& reduction, unsigned ranks, const BlockMaxima& maxima) {
  const int least = real_format_of(reduction.type).least_exponent;
  if (maxima.largest == 0) return 0;
  if (reduction.compressed) {
    const auto step = [&](double largest) { return guarded_step(largest, ranks, 16, least); };
    // The exponent may be that of the largest value with what it carries.
    const double carried = maxima.largest_ever == 0 ? 0 : step(maxima.largest_ever);
    return ranks * (step(maxima.largest + carried) + carried);
  }
  if (reduction.type == DataType::kFloat64)
    return 0.5 * ranks * guarded_step(maxima.largest, ranks, 64, least);
  return 0.5 * ranks * shared_step(maxima.sum, ranks) * kTruthIsRounded;
}

}  // namespace

double product_of(const Reduction& reduction, double value) {
  const double product = std::fabs(value * reduction.pre_scale);
  return reduction.type == DataType::kFloat64 ? product
                                              : static_cast<double>(static_cast<float>(product));
}

void FloatBound::set_blocks(const Reduction& reduction, unsigned ranks, const BlockMaxima& maxima) {
  const Format real = real_format_of(reduction.type);
  absolute_ = quantised(reduction, ranks, maxima);
  if (reduction.pre_scale != 1) {
    relative_ = real.unit * kRoundedTwice;
    absolute_ += ranks * real.half_denormal * kRoundedTwice;
  }
  if (!reduction.compressed) conversion_ = {real.unit, real.half_denormal};
  if (reduction.op == ReduceOp::kAverage) division_ = {real.unit, real.half_denormal};
  if (size_of(reduction.type) == 2) {
    const Format type = format_of(reduction.type);
    narrowing_ = {type.unit, type.half_denormal};
  }
}

void FloatBound::set_ring(const Reduction& reduction, unsigned ranks) {
  const Format type = format_of(reduction.type);
  const bool average = reduction.op == ReduceOp::kAverage;
  relative_ = gamma(ranks - 1 + (average ? 1 : 0), type.unit);
  if (reduction.pre_scale != 1) {
    relative_ += type.unit * kRoundedTwice * (1 + relative_);
    absolute_ = ranks * type.half_denormal * kRoundedTwice;
  }
  if (average) absolute_ += ranks * type.half_denormal * kRoundedTwice;
}

FloatBound::FloatBound(const Reduction& reduction, unsigned ranks, Summation summation,
                       const BlockMaxima& maxima) {
  const bool products_round = reduction.pre_scale != 0 && reduction.pre_scale != 1;
  if (maxima.largest == 0 && !products_round) return;  // zeros, and both ways say so exactly
  if (reduction.op == ReduceOp::kAverage) divisor_ = ranks;
  if (summation == Summation::kBlocks) {
    set_blocks(reduction, ranks, maxima);
  } else {
    set_ring(reduction, ranks);
  }
}

}  // namespace erar::bench
