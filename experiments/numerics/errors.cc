// Errors element by element, in long double, which holds sums of floats with 40 bits to spare.
#include "experiments/numerics/errors.h"

#include <algorithm>
#include <cmath>

#include "core/numeric/block_arithmetic.h"
#include "core/numeric/block_float.h"
#include "core/numeric/compact_lanes.h"

namespace erar::numerics {
namespace {

using numeric::Exponent;
using numeric::kExponentBlock;

// Half a unit in the last place of a float of this magnitude.
long double half_ulp(long double magnitude) {
  constexpr int kLeastNormal = -126;
  const int exponent =
      magnitude == 0 ? kLeastNormal : std::max(std::ilogb(magnitude), kLeastNormal);
  return std::ldexp(1.0L, exponent - 24);
}

std::vector<Exponent> agreed_exponents(const Inputs& inputs) {
  std::vector<Exponent> agreed(numeric::exponent_count(inputs[0].size()));
  std::vector<Exponent> own(agreed.size());
  for (const std::vector<float>& input : inputs) {
    numeric::block_exponents(input, own);
    for (std::size_t i = 0; i < own.size(); i++) agreed[i] = std::max(agreed[i], own[i]);
  }
  return agreed;
}

std::vector<numeric::MagnitudeSum> summed_maxima(const Inputs& inputs) {
  std::vector<numeric::MagnitudeSum> sums(numeric::exponent_count(inputs[0].size()));
  std::vector<numeric::MagnitudeSum> own(sums.size());
  for (const std::vector<float>& input : inputs) {
    numeric::block_maxima(input, own);
    for (std::size_t i = 0; i < own.size(); i++)
      for (std::size_t word = 0; word < sums[i].words.size(); word++)
        sums[i].words[word] += own[i].words[word];
  }
  return sums;
}

}  // namespace

Truth::Truth(const Inputs& inputs)
    : ranks_(static_cast<unsigned>(inputs.size())),
      sums_(inputs[0].size()),
      block_largest_(numeric::exponent_count(inputs[0].size())),
      clamped_(inputs[0].size()) {
  for (const numeric::MagnitudeSum& sum : summed_maxima(inputs))
    block_step_.push_back(numeric::block_float_step(numeric::scale_of(sum, ranks_)));
  for (const Exponent exponent : agreed_exponents(inputs)) {
    block_compact_step_.push_back(numeric::compact_step(exponent, ranks_));
  }
  const double clamped_above = std::ldexp(1.0, 15 - numeric::guard_bits(ranks_)) - 0.5;  // steps
  for (const std::vector<float>& input : inputs) {
    for (std::size_t i = 0; i < input.size(); i++) {
      const double magnitude = std::fabs(input[i]);
      const std::size_t block = i / kExponentBlock;
      sums_[i] += input[i];
      block_largest_[block] = std::max(block_largest_[block], magnitude);
      if (magnitude > clamped_above * block_compact_step_[block]) clamped_[i]++;
    }
  }
}

double Truth::largest_sum() const {
  long double largest = 0;
  for (const long double sum : sums_) largest = std::max(largest, std::fabs(sum));
  return static_cast<double>(largest);
}

double Truth::block_largest(std::size_t element) const {
  return block_largest_[element / kExponentBlock];
}

long double Truth::bound(std::size_t element, bool compressed) const {
  const std::size_t block = element / kExponentBlock;
  if (compressed) return 0.5L * (ranks_ + clamped_[element]) * block_compact_step_[block];
  const long double quantised = 0.5L * ranks_ * block_step_[block];
  return quantised + half_ulp(std::fabs(sums_[element]) + quantised);
}

Errors errors_of(const Truth& truth, const std::vector<float>& sum) {
  Errors errors;
  long double squares = 0;
  for (std::size_t i = 0; i < sum.size(); i++) {
    const long double exact = truth.sum(i);
    const long double error = std::fabs(sum[i] - exact);
    if (error == 0) continue;
    squares += error * error;
    errors.largest = std::max(errors.largest, static_cast<double>(error));
    if (const double largest = truth.block_largest(i); largest != 0)
      errors.largest_to_block =
          std::max(errors.largest_to_block, static_cast<double>(error / largest));
    if (exact != 0)
      errors.largest_relative =
          std::max(errors.largest_relative, static_cast<double>(error / std::fabs(exact)));
    if (error >= std::fabs(exact)) errors.no_digit++;
  }
  if (!sum.empty())
    errors.rms = static_cast<double>(std::sqrt(squares / static_cast<long double>(sum.size())));
  return errors;
}

double share_of_bound(const Truth& truth, const std::vector<float>& sum, bool compressed) {
  double largest = 0;
  for (std::size_t i = 0; i < sum.size(); i++) {
    const long double error = std::fabs(sum[i] - truth.sum(i));
    if (error == 0) continue;
    const long double bound = truth.bound(i, compressed);
    largest = std::max(largest, bound == 0 ? HUGE_VAL : static_cast<double>(error / bound));
  }
  return largest;
}

}  // namespace erar::numerics
