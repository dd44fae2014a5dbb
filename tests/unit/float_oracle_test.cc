// The oracle on sums and averages of floats: takes what either way to compute them may return, and
// nothing beyond its bound.
#include "experiments/bench/float_bound.h"
#include "experiments/bench/oracle.h"
#include "tests/unit/oracle_elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
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

// Each rank's product is rounded to the type.
template <class T>
Inputs<T> scaled(Inputs<T> inputs, double factor) {
  for (auto& input : inputs) {
    for (T& value : input) {
      value = rounded_to<T>(as_exact(value) * static_cast<long double>(factor));
    }
  }
  return inputs;
}

// As a ring of additions in the type does it, starting at `start` (each block of a ring starts
// elsewhere); `ranks` divides an average, whatever number of inputs there is.
template <class T>
std::vector<T> by_ring(const Reduction& reduction, unsigned ranks, const Inputs<T>& given,
                       std::size_t start) {
  const Inputs<T> inputs = reduction.pre_scale == 1 ? given : scaled(given, reduction.pre_scale);
  std::vector<T> sum = inputs[start % inputs.size()];
  for (std::size_t hop = 1; hop < inputs.size(); ++hop) {
    const auto& arrived = inputs[(start + hop) % inputs.size()];
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = rounded_to<T>(as_exact(sum[i]) + as_exact(arrived[i]));
    }
  }
  if (reduction.op == ReduceOp::kAverage) {
    for (T& value : sum) value = rounded_to<T>(as_exact(value) / ranks);
  }
  return sum;
}

// Lanes of a block: `bits` wide, clamped where the format is, with what is rounded off kept.
struct Lanes {
  int bits;
  bool clamped;
};

template <class T>
Lanes lanes_of(const Reduction& reduction) {
  if (reduction.compressed) return {16, true};
  return {std::is_same_v<T, double> ? 64 : 32, false};
}

// As eRAR does it: a common exponent for each block, integers, one conversion. carried: what each
// rank rounded off in the call before and adds now; replaced by what it rounds off in this one.
template <class T>
std::vector<T> by_blocks(const Reduction& reduction, const Inputs<T>& given,
                         std::vector<std::vector<long double>>* carried = nullptr) {
  const Inputs<T> inputs = reduction.pre_scale == 1 ? given : scaled(given, reduction.pre_scale);
  const auto ranks = static_cast<unsigned>(inputs.size());
  const int guard = static_cast<int>(std::bit_width(ranks - 1));
  const Lanes lanes = lanes_of<T>(reduction);
  const int least = std::is_same_v<T, double> ? -1022 : -126;
  using Converted = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<T> result(inputs[0].size());
  for (std::size_t first = 0; first < result.size(); first += kBlock) {
    const std::size_t end = std::min(first + kBlock, result.size());
    long double largest = 0;
    for (const auto& input : inputs) {
      for (std::size_t i = first; i < end; ++i) {
        largest = std::max(largest, std::fabs(as_exact(input[i])));
      }
    }
    const int exponent = std::max(std::ilogb(largest), least);
    const int shift = lanes.bits - 2 - guard - exponent;
    const long double most = std::ldexp(1.0L, lanes.bits - 1 - guard) - 1;
    for (std::size_t i = first; i < end; ++i) {
      __int128 sum = 0;
      for (unsigned rank = 0; rank < ranks; ++rank) {
        const long double before = carried != nullptr ? (*carried)[rank][i] : 0;
        const long double wanted = as_exact(inputs[rank][i]) + before;
        long double lane = std::nearbyint(std::ldexp(wanted, shift));
        if (lanes.clamped) lane = std::clamp(lane, -most, most);
        EXPECT_LE(std::fabs(lane), most);
        if (carried != nullptr) (*carried)[rank][i] = wanted - std::ldexp(lane, -shift);
        sum += static_cast<__int128>(lane);
      }
      const auto value = static_cast<Converted>(std::ldexp(static_cast<long double>(sum), -shift));
      const auto average = static_cast<Converted>(value / static_cast<Converted>(ranks));
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

template <class Typed>
class FloatOracle : public ::testing::Test {};
TYPED_TEST_SUITE(FloatOracle, FloatTypes);

TYPED_TEST(FloatOracle, TakesRingsOfAnyOrder) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : float_reductions(TypeParam::kType)) {
    for (const unsigned ranks : {1U, 2U, 3U, 4U, 8U, 64U}) {
      const Operation operation{reduction, ranks, 21};
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
    const Operation operation{reduction, 4, 23};
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
    const Operation earlier{reduction, 4, 24};
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
    const Operation operation{reduction, 4, 25};
    auto result = by_ring(reduction, 4, inputs_of<T>(operation), 0);
    result[3] = rounded_to<T>(std::numeric_limits<double>::quiet_NaN());
    result[4] = rounded_to<T>(std::numeric_limits<double>::infinity());
    result[kBlock] = rounded_to<T>(-std::numeric_limits<double>::infinity());
    EXPECT_EQ(wrong_in(operation, result), 3U) << text_of(reduction, 4);
  }
}

// The last value within the bound is taken and the next is not, on both sides of the truth.
TYPED_TEST(FloatOracle, TheBoundIsWhereItSaysItIs) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : float_reductions(TypeParam::kType)) {
    for (const unsigned ranks : {2U, 5U, 64U}) {
      const Operation operation{reduction, ranks, 26};
      const auto inputs = inputs_of<T>(operation);
      const auto right = by_ring(reduction, ranks, inputs, 0);
      for (const std::size_t at :
           {std::size_t{0}, std::size_t{700}, kBlock - 1, kBlock, kCount - 1}) {
        const std::size_t first = at / kBlock * kBlock;
        long double largest = 0;
        long double sum = 0;
        long double magnitudes = 0;
        for (const auto& input : inputs) {
          for (std::size_t i = first; i < std::min(first + kBlock, kCount); ++i) {
            largest = std::max(largest, std::fabs(as_exact(input[i])));
          }
          const long double product =
              as_exact(input[at]) * static_cast<long double>(reduction.pre_scale);
          sum += product;
          magnitudes += std::fabs(product);
        }
        if (reduction.op == ReduceOp::kAverage) sum /= ranks;
        const FloatBound bound(reduction, ranks, static_cast<double>(largest), 0);
        const auto allowed = static_cast<long double>(
            bound.of(static_cast<double>(sum), static_cast<double>(magnitudes)));
        T above = rounded_to<T>(sum + allowed);
        while (as_exact(above) - sum > allowed) above = next_down(above);
        while (as_exact(above) - sum <= allowed) above = next_up(above);
        T below = rounded_to<T>(sum - allowed);
        while (sum - as_exact(below) > allowed) below = next_up(below);
        while (sum - as_exact(below) <= allowed) below = next_down(below);
        auto result = right;
        for (const T beyond : {above, below}) {
          result[at] = beyond;
          EXPECT_EQ(wrong_in(operation, result), 1U) << text_of(reduction, ranks) << " " << at;
        }
        for (const T within : {next_down(above), next_up(below)}) {
          result[at] = within;
          EXPECT_EQ(wrong_in(operation, result), 0U) << text_of(reduction, ranks) << " " << at;
        }
      }
    }
  }
}

TEST(FloatBound, FollowsItsDefinition) {
  const Reduction sum{DataType::kFloat32, ReduceOp::kSum};
  // 4 ranks, largest magnitude in [1, 2): exponent 0, 2 guard bits, so a step is 2^-28; 2 steps.
  const FloatBound bound(sum, 4, 1.5, 0);
  EXPECT_NEAR(bound.of(0, 0), 2 * 0x1p-28, 0x1p-45);
  EXPECT_NEAR(bound.of(3, 0), 2 * 0x1p-28 + 3 * 0x1p-24, 0x1p-45);
  EXPECT_NEAR(bound.of(-3, 6), 3 * 0x1p-24 * 6, 0x1p-40);  // three roundings of at most 6
  EXPECT_EQ(FloatBound(sum, 64, 0, 0).of(0, 0), 0);
  // A block of denormals has a step of its own: 2^-155 for 2 ranks.
  EXPECT_NEAR(FloatBound(sum, 2, 0x1p-149, 0).of(0, 0), 0x1p-150 + 0x1p-155, 0x1p-170);
}

TEST(FloatBound, OfAveragesScalesAndOtherTypes) {
  // Half a step, conversion and division; four roundings of a quarter of the sum of magnitudes.
  const FloatBound average({DataType::kFloat32, ReduceOp::kAverage}, 4, 1.5, 0);
  EXPECT_NEAR(average.of(0, 0), 0.5 * 0x1p-28, 0x1p-45);
  EXPECT_NEAR(average.of(3, 0), 0.5 * 0x1p-28 + 2 * 3 * 0x1p-24, 0x1p-44);
  EXPECT_NEAR(average.of(3, 16), 4 * 0x1p-24 * 4, 0x1p-40);
  // The product's exponent counts, and its rounding: 1.5 * 2 = 3, exponent 1.
  const FloatBound doubled({DataType::kFloat32, ReduceOp::kSum, 2}, 4, 1.5, 0);
  EXPECT_NEAR(doubled.of(0, 0), 2 * 0x1p-27, 0x1p-45);
  EXPECT_NEAR(doubled.of(0, 5), (3 + 1) * 0x1p-24 * 5, 0x1p-30);
  // 64-bit lanes: 2^-(1085 - guard - e) with e = 1023.
  const FloatBound wide({DataType::kFloat64, ReduceOp::kSum}, 4, 1.5, 0);
  EXPECT_DOUBLE_EQ(wide.of(0, 0), 2 * 0x1p-60);
  EXPECT_DOUBLE_EQ(wide.of(0, 6), 3 * 0x1p-53 * 6);
  const FloatBound half({DataType::kFloat16, ReduceOp::kSum}, 4, 1.5, 0);
  EXPECT_NEAR(half.of(0, 0), 2 * 0x1p-28 + 0x1p-25, 0x1p-36);
  EXPECT_NEAR(half.of(3, 0), 3 * (0x1p-11 + 0x1p-24) + 2 * 0x1p-28 + 0x1p-25, 0x1p-33);
  const double three = 3 * 0x1p-8;
  const FloatBound brain({DataType::kBfloat16, ReduceOp::kSum}, 4, 1.5, 0);
  EXPECT_DOUBLE_EQ(brain.of(0, 6), three / (1 - three) * 6);
  // 16-bit lanes: a step is 2^-12, and each rank is off by one of this and one of the last call.
  Reduction compressed{DataType::kFloat32, ReduceOp::kSum};
  compressed.compressed = true;
  EXPECT_NEAR(FloatBound(compressed, 4, 1.5, 4).of(0, 0), 4 * (0x1p-12 + 0x1p-10), 0x1p-30);
}

}  // namespace
}  // namespace erar::bench
