// The error bounds of both ways to reduce floats, from the types' formats.
#include "experiments/bench/float_bound.h"

#include <algorithm>
#include <bit>
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

Format format_of(DataType type) {
  if (type == DataType::kFloat64) return kBinary64;
  if (type == DataType::kFloat16) return {0x1p-11, 0x1p-25, -14};
  if (type == DataType::kBfloat16) return {0x1p-8, 0x1p-134, -126};
  return kBinary32;
}

double gamma(unsigned roundings, double unit) {
  const double product = roundings * unit;
  return product / (1 - product);
}

}  // namespace

FloatBound::FloatBound(const Reduction& reduction, unsigned ranks, double largest,
                       double largest_ever) {
  const double factor = std::fabs(reduction.pre_scale);
  if (largest * factor == 0) return;  // all addends are zero, and both ways say so exactly
  const Format type = format_of(reduction.type);
  const bool is_double = reduction.type == DataType::kFloat64;
  const Format converted = is_double ? kBinary64 : kBinary32;
  const bool is_half = size_of(reduction.type) == 2;
  const bool average = reduction.op == ReduceOp::kAverage;
  const bool is_scaled = reduction.pre_scale != 1;
  const double share = average ? 1.0 / ranks : 1.0;

  // A product may be rounded by way of a wider type.
  const double product_unit = is_scaled ? type.unit * (1 + 0x1p-10) : 0;
  const double product_underflow = is_scaled ? ranks * type.half_denormal * (1 + 0x1p-10) : 0;

  const int lane_bits = is_double ? 64 : reduction.compressed ? 16 : 32;
  const int guard_bits = static_cast<int>(std::bit_width(ranks - 1));
  const auto step = [&](double magnitude) {
    const int exponent = std::max(std::ilogb(magnitude), converted.least_exponent);
    return std::ldexp(1.0, exponent - (lane_bits - 2 - guard_bits));
  };
  const double largest_product = largest * factor * (1 + product_unit);
  double quantised = 0.5 * ranks * step(largest_product);
  if (reduction.compressed) {
    const double carried = step(largest_ever * factor * (1 + product_unit));
    // The exponent may be that of the largest value with what it carries.
    quantised = ranks * (step(largest_product + carried) + carried);
  }
  const unsigned conversions = average ? 2 : 1;
  const double to_float = gamma(conversions, converted.unit);
  relative_ = is_half ? to_float + type.unit + to_float * type.unit : to_float;
  absolute_ = quantised * share * (1 + relative_) + conversions * converted.half_denormal +
              (is_half ? type.half_denormal : 0) + product_underflow;
  scaled_ = product_unit * (1 + relative_);

  const double additions = gamma(ranks - 1 + (average ? 1 : 0), type.unit);
  gamma_ = (additions + product_unit * (1 + additions)) * share;
  underflow_ = product_underflow + (average ? type.half_denormal * (1 + 0x1p-10) : 0);
}

}  // namespace erar::bench
