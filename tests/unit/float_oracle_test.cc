// The oracle on sums and averages of floats: takes what either way to compute them may return, and
// nothing beyond its bound.
#include "core/numeric/block_float.h"
#include "experiments/bench/float_bound.h"
#include "experiments/bench/oracle.h"
#include "tests/unit/oracle_elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace erar::bench {
namespace {

constexpr std::size_t kBlock = 1024;
constexpr std::size_t kCount = 5 * kBlock + 77;

template <class T>
using Inputs = std::vector<std::vector<T>>;

template <class T>
Inputs<T> inputs_of(const Operation& operation) {
  Inputs<T> inputs;
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    inputs.push_back(elements_of<T>(operation, rank, kCount));
  }
  return inputs;
}

// Each rank's values, exactly; products with a factor are rounded to Rounded.
using Products = std::vector<std::vector<long double>>;
template <class Rounded, class T>
Products products_of(const Inputs<T>& inputs, double factor) {
  Products products;
  for (const auto& input : inputs) {
    std::vector<long double>& made = products.emplace_back();
    for (const T value : input) {
      const long double exact = as_exact(value);
      made.push_back(factor == 1
                         ? exact
                         : as_exact(rounded_to<Rounded>(exact * static_cast<long double>(factor))));
    }
  }
  return products;
}

// As a ring of additions in the type does it, starting at `start` (each block of a ring starts
// elsewhere); `ranks` divides an average, whatever number of inputs there is.
template <class T>
std::vector<T> by_ring(const Reduction& reduction, unsigned ranks, const Inputs<T>& given,
                       std::size_t start) {
  const Products inputs = products_of<T>(given, reduction.pre_scale);
  std::vector<T> sum;
  for (const long double value : inputs[start % inputs.size()]) sum.push_back(rounded_to<T>(value));
  for (std::size_t hop = 1; hop < inputs.size(); ++hop) {
    const auto& arrived = inputs[(start + hop) % inputs.size()];
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = rounded_to<T>(as_exact(sum[i]) + arrived[i]);
    }
  }
  if (reduction.op == ReduceOp::kAverage) {
    for (T& value : sum) value = rounded_to<T>(as_exact(value) / ranks);
  }
  return sum;
}

// What lanes are converted to, and products are rounded to before they go into lanes.
template <class T>
using Converted = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The largest magnitudes of elements first .. end of each rank.
BlockMaxima maxima_of(const Products& inputs, std::size_t first, std::size_t end) {
  BlockMaxima maxima;
  for (const auto& input : inputs) {
    long double largest = 0;
    for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(input[i]));
    maxima.largest = std::max(maxima.largest, static_cast<double>(largest));
    maxima.sum += static_cast<double>(largest);
  }
  return maxima;
}

// How lanes stand for values: the product with 2^shift, as an integer from -most to most.
struct Lanes {
  int shift;
  long double most;
};

// 32 bits, under the scale that the sum of the ranks' largest magnitudes allows.
Lanes shared_lanes(const BlockMaxima& maxima, unsigned ranks) {
  const long double bias = std::floor(0x1p31L / ranks);
  const long double limit = ranks * bias - ranks / 2.0L - 2;
  int shift = 31 - std::ilogb(maxima.sum);
  while (std::ldexp(maxima.sum * (1 + 0x1p-48L), shift) > limit) --shift;
  return {shift, 0x1p31L};
}

// 64 bits, or 16 where compressed, under that of the largest magnitude of all ranks.
template <class T>
Lanes guarded_lanes(const BlockMaxima& maxima, unsigned ranks, int bits) {
  const int guard = static_cast<int>(std::bit_width(ranks - 1));
  const int exponent =
      std::max(std::ilogb(maxima.largest), std::numeric_limits<Converted<T>>::min_exponent - 1);
  return {bits - 2 - guard - exponent, std::ldexp(1.0L, bits - 1 - guard) - 1};
}

template <class T>
Lanes lanes_of(const Reduction& reduction, unsigned ranks, const BlockMaxima& maxima) {
  if (reduction.compressed) return guarded_lanes<T>(maxima, ranks, 16);
  if (std::is_same_v<T, double>) return guarded_lanes<T>(maxima, ranks, 64);
  return shared_lanes(maxima, ranks);
}

// As eRAR does it: a common scale for each block, integers, one conversion. carried: what each
// rank rounded off in the call before and adds now; replaced by what it rounds off in this one.
template <class T>
std::vector<T> by_blocks(const Reduction& reduction, const Inputs<T>& given,
                         std::vector<std::vector<long double>>* carried = nullptr) {
  using Real = Converted<T>;
  const Products inputs = products_of<Real>(given, reduction.pre_scale);
  const auto ranks = static_cast<unsigned>(inputs.size());
  std::vector<T> result(inputs[0].size());
  for (std::size_t first = 0; first < result.size(); first += kBlock) {
    const std::size_t end = std::min(first + kBlock, result.size());
    const Lanes lanes = lanes_of<T>(reduction, ranks, maxima_of(inputs, first, end));
    for (std::size_t i = first; i < end; ++i) {
      __int128 sum = 0;
      for (unsigned rank = 0; rank < ranks; ++rank) {
        const long double before = carried != nullptr ? (*carried)[rank][i] : 0;
        const long double wanted = inputs[rank][i] + before;
        long double lane = std::nearbyint(std::ldexp(wanted, lanes.shift));
        if (reduction.compressed) lane = std::clamp(lane, -lanes.most, lanes.most);
        EXPECT_LE(std::fabs(lane), lanes.most);
        if (carried != nullptr) (*carried)[rank][i] = wanted - std::ldexp(lane, -lanes.shift);
        sum += static_cast<__int128>(lane);
      }
      const auto value = static_cast<Real>(std::ldexp(static_cast<long double>(sum), -lanes.shift));
      const auto average = static_cast<Real>(value / static_cast<Real>(ranks));
      result[i] = T(reduction.op == ReduceOp::kAverage ? average : value);
    }
  }
  return result;
}

std::vector<Reduction> float_reductions(DataType type) {
  return {{type, ReduceOp::kSum},
          {type, ReduceOp::kSum, -0.3},
          {type, ReduceOp::kSum, 3},
          {type, ReduceOp::kAverage}};
}

std::string text_of(const Reduction& reduction, unsigned ranks) {
  return std::string(name_of(reduction.op)) + " of " + std::to_string(ranks) + " times " +
         std::to_string(reduction.pre_scale);
}

Operation operation_of(const Reduction& reduction, unsigned ranks, std::uint64_t seed,
                       Summation summation) {
  Operation operation{reduction, ranks, seed};
  operation.summation = summation;
  return operation;
}

template <class Typed>
class FloatOracle : public ::testing::Test {};
TYPED_TEST_SUITE(FloatOracle, FloatTypes);

TYPED_TEST(FloatOracle, TakesRingsOfAnyOrder) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : float_reductions(TypeParam::kType)) {
    for (const unsigned ranks : {1U, 2U, 3U, 4U, 8U, 64U}) {
      const Operation operation = operation_of(reduction, ranks, 21, Summation::kRing);
      const auto inputs = inputs_of<T>(operation);
      for (const unsigned start : {0U, 1U, ranks / 2, ranks - 1}) {
        EXPECT_EQ(wrong_in(operation, by_ring(reduction, ranks, inputs, start)), 0U)
            << text_of(reduction, ranks) << " from " << start;
      }
    }
  }
}

TYPED_TEST(FloatOracle, TakesBlockFloatingPoint) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : float_reductions(TypeParam::kType)) {
    for (const unsigned ranks : {1U, 2U, 3U, 4U, 5U, 8U, 9U, 33U, 64U}) {
      const Operation operation{reduction, ranks, 22};
      EXPECT_EQ(wrong_in(operation, by_blocks(reduction, inputs_of<T>(operation))), 0U)
          << text_of(reduction, ranks);
    }
  }
}

TYPED_TEST(FloatOracle, TakesCompressedSumsThatCarryOver) {
  using T = typename TypeParam::Type;
  if (std::is_same_v<T, double>) return;  // no backend compresses them
  for (Reduction reduction : float_reductions(TypeParam::kType)) {
    reduction.compressed = true;
    for (const unsigned ranks : {1U, 3U, 4U, 64U}) {
      std::vector<std::vector<long double>> carried(ranks, std::vector<long double>(kCount));
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        Operation operation{reduction, ranks, seed};
        operation.scale_seed = 99;
        const auto inputs = inputs_of<T>(operation);
        EXPECT_EQ(wrong_in(operation, by_blocks(reduction, inputs, &carried)), 0U)
            << text_of(reduction, ranks);
      }
    }
    Operation operation{reduction, 4, 7};
    operation.scale_seed = 99;
    auto missing = inputs_of<T>(operation);
    missing[1].assign(kCount, T{});
    EXPECT_GT(wrong_in(operation, by_blocks(reduction, missing)), kCount * 3 / 4);
    // A lane does not explain an error of a twentieth.
    auto coarse = by_ring(reduction, 4, inputs_of<T>(operation), 0);
    for (std::size_t i = 0; i < kCount; ++i) coarse[i] = rounded_to<T>(as_exact(coarse[i]) * 1.05L);
    EXPECT_GT(wrong_in(operation, coarse), kCount / 2);
  }
}

TYPED_TEST(FloatOracle, FindsWhatWentWrongAsAWhole) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : float_reductions(TypeParam::kType)) {
    const Operation operation = operation_of(reduction, 4, 23, Summation::kRing);
    const auto inputs = inputs_of<T>(operation);
    const std::string text = text_of(reduction, 4);
    auto missing = inputs;
    missing.pop_back();
    EXPECT_GT(wrong_in(operation, by_ring(reduction, 4, missing, 0)), kCount * 3 / 4) << text;
    auto doubled = inputs;
    doubled.push_back(inputs[2]);
    EXPECT_GT(wrong_in(operation, by_ring(reduction, 4, doubled, 0)), kCount * 3 / 4) << text;
    auto swapped = by_ring(reduction, 4, inputs, 0);
    for (std::size_t i = 0; i + 1 < kCount; i += 2) std::swap(swapped[i], swapped[i + 1]);
    EXPECT_GT(wrong_in(operation, swapped), kCount * 3 / 4) << text;
    const Operation earlier = operation_of(reduction, 4, 24, Summation::kRing);
    EXPECT_GT(wrong_in(operation, by_ring(reduction, 4, inputs_of<T>(earlier), 0)), kCount * 3 / 4)
        << text;
    Reduction other = reduction;
    other.pre_scale = 1;
    other.op = reduction.op == ReduceOp::kAverage ? ReduceOp::kSum : ReduceOp::kAverage;
    EXPECT_GT(wrong_in(operation, by_ring(other, 4, inputs, 0)), kCount * 3 / 4) << text;
  }
}

TYPED_TEST(FloatOracle, NanAndInfinityAreWrong) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : float_reductions(TypeParam::kType)) {
    const Operation operation = operation_of(reduction, 4, 25, Summation::kRing);
    auto result = by_ring(reduction, 4, inputs_of<T>(operation), 0);
    result[3] = rounded_to<T>(std::numeric_limits<double>::quiet_NaN());
    result[4] = rounded_to<T>(std::numeric_limits<double>::infinity());
    result[kBlock] = rounded_to<T>(-std::numeric_limits<double>::infinity());
    EXPECT_EQ(wrong_in(operation, result), 3U) << text_of(reduction, 4);
  }
}

// One element of a reduction, exactly.
struct Exact {
  long double result = 0;
  long double magnitudes = 0;
};

Exact exact_of(const Reduction& reduction, const Products& inputs, std::size_t at) {
  Exact exact;
  for (const auto& input : inputs) {
    const long double product = input[at] * static_cast<long double>(reduction.pre_scale);
    exact.result += product;
    exact.magnitudes += std::fabs(product);
  }
  if (reduction.op == ReduceOp::kAverage) exact.result /= static_cast<long double>(inputs.size());
  return exact;
}

// The last value within `allowed` of the exact one is taken and the first beyond `refused` is not,
// on both sides. `right` is a result that is otherwise.
template <class T>
void expect_limits(const Operation& operation, std::vector<T> right, std::size_t at,
                   long double exact, long double allowed, long double refused) {
  const std::string text =
      text_of(operation.reduction, operation.ranks) + " at " + std::to_string(at);
  T above = rounded_to<T>(exact + allowed);
  while (as_exact(above) - exact > allowed) above = next_down(above);
  T below = rounded_to<T>(exact - allowed);
  while (exact - as_exact(below) > allowed) below = next_up(below);
  for (const T within : {above, below}) {
    right[at] = within;
    EXPECT_EQ(wrong_in(operation, right), 0U) << text;
  }
  while (as_exact(above) - exact <= refused) above = next_up(above);
  while (exact - as_exact(below) <= refused) below = next_down(below);
  for (const T beyond : {above, below}) {
    right[at] = beyond;
    EXPECT_EQ(wrong_in(operation, right), 1U) << text;
  }
}

constexpr std::array<std::size_t, 5> kPlaces{0, 700, kBlock - 1, kBlock, kCount - 1};

TYPED_TEST(FloatOracle, TheBoundIsWhereItSaysItIs) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : float_reductions(TypeParam::kType)) {
    for (const unsigned ranks : {2U, 5U, 64U}) {
      for (const Summation summation : {Summation::kBlocks, Summation::kRing}) {
        const Operation operation = operation_of(reduction, ranks, 26, summation);
        const auto inputs = inputs_of<T>(operation);
        const auto right = summation == Summation::kRing ? by_ring(reduction, ranks, inputs, 0)
                                                         : by_blocks(reduction, inputs);
        const Products rounded = products_of<Converted<T>>(inputs, reduction.pre_scale);
        const Products given = products_of<T>(inputs, 1);
        for (const std::size_t at : kPlaces) {
          const std::size_t first = at / kBlock * kBlock;
          const BlockMaxima maxima = maxima_of(rounded, first, std::min(first + kBlock, kCount));
          const Exact exact = exact_of(reduction, given, at);
          const long double allowed =
              FloatBound(reduction, ranks, summation, maxima)
                  .of(static_cast<double>(exact.result), static_cast<double>(exact.magnitudes));
          expect_limits(operation, right, at, exact.result, allowed, allowed);
        }
      }
    }
  }
}

// Half an ulp of numbers of this magnitude; digits and least exponent are the type's.
long double half_ulp(long double magnitude, int digits, int least_exponent) {
  const int exponent =
      magnitude == 0 ? least_exponent : std::max(std::ilogb(magnitude), least_exponent);
  return std::ldexp(1.0L, exponent - digits);
}

// As docs/numerics.md has it; `quantised` is N/2 steps.
long double documented_bound(const Reduction& reduction, unsigned ranks, long double quantised,
                             long double exact) {
  const long double magnitude = std::fabs(exact);
  const bool average = reduction.op == ReduceOp::kAverage;
  const long double divisor = average ? ranks : 1;
  long double bound = quantised;
  bound += half_ulp(magnitude * divisor + bound, 24, -126);
  bound /= divisor;
  if (average) bound += half_ulp(magnitude + bound, 24, -126);
  if (reduction.type == DataType::kFloat16) bound += half_ulp(magnitude + bound, 11, -14);
  if (reduction.type == DataType::kBfloat16) bound += half_ulp(magnitude + bound, 8, -126);
  return bound;
}

TYPED_TEST(FloatOracle, AnErrorAboveTheDocumentedBoundIsWrong) {
  using T = typename TypeParam::Type;
  if (std::is_same_v<T, double>) return;  // its bound has not enough room for long doubles
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    const Reduction reduction{TypeParam::kType, op};
    for (const unsigned ranks : {2U, 3U, 33U, 64U}) {
      const Operation operation = operation_of(reduction, ranks, 27, Summation::kBlocks);
      const auto inputs = inputs_of<T>(operation);
      const auto right = by_blocks(reduction, inputs);
      const Products given = products_of<T>(inputs, 1);
      for (const std::size_t at : kPlaces) {
        const std::size_t first = at / kBlock * kBlock;
        const BlockMaxima maxima = maxima_of(given, first, std::min(first + kBlock, kCount));
        const long double quantised = std::ldexp(ranks / 2.0L, -shared_lanes(maxima, ranks).shift);
        EXPECT_LE(quantised, ranks * maxima.sum * 0x1p-31L * (1 + 0x1p-24L));
        const long double exact = exact_of(reduction, given, at).result;
        const long double bound = documented_bound(reduction, ranks, quantised, exact);
        expect_limits(operation, right, at, exact, bound, bound * (1 + 0x1p-19L));
      }
    }
  }
}

// The oracle's step is core's, also where the sum of the maxima is just what fits.
TEST(FloatBound, HasTheStepOfTheScale) {
  std::mt19937_64 random(5);
  for (unsigned ranks = 1; ranks <= 64; ++ranks) {
    const double limit = ranks * std::floor(0x1p31 / ranks) - ranks / 2.0 - 2;
    for (int round = 0; round < 50; ++round) {
      BlockMaxima maxima;
      numeric::MagnitudeSum sum;
      for (unsigned rank = 0; rank < ranks; ++rank) {
        // The first few below what fits, and the rest of that, where it is a float; else any.
        float value =
            std::ldexp(static_cast<float>(random() % 0xffffff), -static_cast<int>(random() % 40));
        if (round < 10 && rank == 0) value = 2147483520.0F;
        if (round < 10 && rank == 1)
          value = static_cast<float>(limit - 2147483520.0) + static_cast<float>(round - 5);
        if (round < 10 && rank > 1) value = 0;
        numeric::MagnitudeSum own;
        numeric::block_maxima({&value, 1}, {&own, 1});
        for (std::size_t word = 0; word < own.words.size(); ++word)
          sum.words[word] += own.words[word];
        const auto magnitude = static_cast<double>(std::fabs(value));
        maxima.largest = std::max(maxima.largest, magnitude);
        maxima.sum += magnitude;
      }
      const double step = numeric::block_float_step(numeric::scale_of(sum, ranks));
      const FloatBound bound({DataType::kFloat32, ReduceOp::kSum}, ranks, Summation::kBlocks,
                             maxima);
      EXPECT_NEAR(bound.of(0, 0) / (ranks / 2.0 * step), 1, 0x1p-18)
          << ranks << " ranks, " << round;
    }
  }
}

BlockMaxima maxima_of(double largest, double sum, double largest_ever = 0) {
  return {largest, sum, largest_ever};
}

TEST(FloatBound, FollowsItsDefinition) {
  const Reduction sum{DataType::kFloat32, ReduceOp::kSum};
  // 4 ranks whose maxima add up to 4: 2^31 steps of 2^-29 would not fit, so each may be half of
  // 2^-28 off.
  const FloatBound bound(sum, 4, Summation::kBlocks, maxima_of(1.5, 4));
  EXPECT_NEAR(bound.of(0, 0), 2 * 0x1p-28, 0x1p-45);
  EXPECT_NEAR(bound.of(3, 0), 2 * 0x1p-28 + 0x1p-23, 0x1p-45);
  EXPECT_NEAR(bound.of(3.9, 0), 2 * 0x1p-28 + 0x1p-23, 0x1p-45);
  EXPECT_NEAR(bound.of(-4, 0), 2 * 0x1p-28 + 0x1p-22, 0x1p-45);
  // One rank has it all.
  EXPECT_NEAR(FloatBound(sum, 4, Summation::kBlocks, maxima_of(1.5, 1.5)).of(0, 0), 2 * 0x1p-30,
              0x1p-45);
  const FloatBound ring(sum, 4, Summation::kRing, maxima_of(1.5, 4));
  EXPECT_NEAR(ring.of(-3, 6), 3 * 0x1p-24 * 6, 0x1p-40);  // three roundings of at most 6
  EXPECT_EQ(FloatBound(sum, 64, Summation::kBlocks, {}).of(0, 0), 0);
  EXPECT_EQ(FloatBound(sum, 64, Summation::kRing, {}).of(0, 0), 0);
  // A block of denormals has a step of its own, 2^-178 for 2 ranks; the rounding is half of 2^-149.
  EXPECT_NEAR(FloatBound(sum, 2, Summation::kBlocks, maxima_of(0x1p-149, 0x1p-148)).of(0, 0),
              0x1p-150 + 0x1p-178, 0x1p-190);
}

TEST(FloatBound, OfAveragesScalesAndOtherTypes) {
  const auto blocks = Summation::kBlocks;
  // Half a step, conversion and division; four roundings of a quarter of the sum of magnitudes.
  const Reduction mean{DataType::kFloat32, ReduceOp::kAverage};
  const FloatBound average(mean, 4, blocks, maxima_of(1.5, 4));
  EXPECT_NEAR(average.of(0, 0), 0.5 * 0x1p-28, 0x1p-45);
  EXPECT_NEAR(average.of(3, 0), 0.5 * 0x1p-28 + 0x1p-21 / 4 + 0x1p-23, 0x1p-44);
  EXPECT_NEAR(FloatBound(mean, 4, Summation::kRing, maxima_of(1.5, 4)).of(3, 16), 4 * 0x1p-24 * 4,
              0x1p-40);
  // A product's rounding counts as well.
  const Reduction twice{DataType::kFloat32, ReduceOp::kSum, 2};
  EXPECT_EQ(product_of(twice, -1.5), 3);
  EXPECT_EQ(product_of({DataType::kFloat16, ReduceOp::kSum, 0.1}, 1), 0.1F);
  const FloatBound doubled(twice, 4, blocks, maxima_of(3, 8));
  EXPECT_NEAR(doubled.of(0, 0), 2 * 0x1p-27, 0x1p-45);
  EXPECT_NEAR(doubled.of(0, 5), 2 * 0x1p-27 + 0x1p-24 * 5, 0x1p-30);
  EXPECT_NEAR(FloatBound(twice, 4, Summation::kRing, maxima_of(3, 8)).of(0, 5),
              (3 + 1) * 0x1p-24 * 5, 0x1p-30);
  // 64-bit lanes: a step is 2^-60 and does not depend on the sum of the maxima.
  const Reduction wide{DataType::kFloat64, ReduceOp::kSum};
  EXPECT_DOUBLE_EQ(FloatBound(wide, 4, blocks, maxima_of(1.5, 6)).of(0, 0), 2 * 0x1p-60);
  EXPECT_DOUBLE_EQ(FloatBound(wide, 4, Summation::kRing, maxima_of(1.5, 6)).of(0, 6),
                   3 * 0x1p-53 * 6);
  const FloatBound half({DataType::kFloat16, ReduceOp::kSum}, 4, blocks, maxima_of(1.5, 4));
  EXPECT_NEAR(half.of(0, 0), 2 * 0x1p-28 + 0x1p-25, 0x1p-36);
  EXPECT_NEAR(half.of(3, 0), 2 * 0x1p-28 + 0x1p-23 + 0x1p-10, 0x1p-33);
  const double three = 3 * 0x1p-8;
  const Reduction brain{DataType::kBfloat16, ReduceOp::kSum};
  EXPECT_DOUBLE_EQ(FloatBound(brain, 4, Summation::kRing, maxima_of(1.5, 4)).of(0, 6),
                   three / (1 - three) * 6);
  // 16-bit lanes: a step is 2^-12, and each rank is off by one of this and one of the last call.
  Reduction compressed{DataType::kFloat32, ReduceOp::kSum};
  compressed.compressed = true;
  EXPECT_NEAR(FloatBound(compressed, 4, blocks, maxima_of(1.5, 4, 4)).of(0, 0),
              4 * (0x1p-12 + 0x1p-10), 0x1p-30);
}

}  // namespace
}  // namespace erar::bench
