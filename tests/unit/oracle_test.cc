// The oracle on integers, least and greatest, and its hash: takes what is right, and nothing else.
#include "experiments/bench/oracle.h"

#include "tests/unit/oracle_elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

namespace erar::bench {
namespace {

constexpr std::size_t kCount = 5 * 1024 + 77;

template <class T>
std::vector<std::vector<T>> integers_of(const Operation& operation, std::size_t count) {
  std::vector<std::vector<T>> inputs;
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    inputs.push_back(elements_of<T>(operation, rank, count));
  }
  return inputs;
}

// By the definition, in arithmetic that cannot overflow, of these inputs as they are.
template <class T>
std::vector<T> reduced(const Reduction& reduction, unsigned ranks,
                       const std::vector<std::vector<T>>& inputs) {
  std::vector<T> result(inputs[0].size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    __int128 sum = 0;
    T least = inputs[0][i];
    T most = inputs[0][i];
    for (const auto& input : inputs) {
      sum += input[i] * static_cast<__int128>(reduction.pre_scale);
      least = std::min(least, input[i]);
      most = std::max(most, input[i]);
    }
    if (reduction.op == ReduceOp::kSum) result[i] = static_cast<T>(sum);
    if (reduction.op == ReduceOp::kAverage) {
      result[i] = static_cast<T>(sum / static_cast<int>(ranks));
    }
    if (reduction.op == ReduceOp::kMin) result[i] = least;
    if (reduction.op == ReduceOp::kMax) result[i] = most;
  }
  return result;
}

template <class T>
std::vector<T> reduced(const Operation& operation, std::size_t count) {
  return reduced(operation.reduction, operation.ranks, integers_of<T>(operation, count));
}

std::vector<Reduction> integer_reductions(DataType type) {
  return {{type, ReduceOp::kSum},     {type, ReduceOp::kSum, 3},       {type, ReduceOp::kSum, -259},
          {type, ReduceOp::kAverage}, {type, ReduceOp::kMin},          {type, ReduceOp::kMax},
          {type, ReduceOp::kSum, 0},  {type, ReduceOp::kSum, 9e15 + 1}};
}

template <class Typed>
class IntegerOracle : public ::testing::Test {};
using IntegerTypes =
    ::testing::Types<Typed<std::int8_t, DataType::kInt8>, Typed<std::uint8_t, DataType::kUint8>,
                     Typed<std::int32_t, DataType::kInt32>, Typed<std::uint32_t, DataType::kUint32>,
                     Typed<std::int64_t, DataType::kInt64>,
                     Typed<std::uint64_t, DataType::kUint64>>;
TYPED_TEST_SUITE(IntegerOracle, IntegerTypes);

TYPED_TEST(IntegerOracle, TakesTheExactResult) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : integer_reductions(TypeParam::kType)) {
    for (const unsigned ranks : {1U, 2U, 3U, 5U, 8U, 64U}) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1024}, kCount}) {
        const Operation operation{reduction, ranks, 11};
        EXPECT_EQ(wrong_in(operation, reduced<T>(operation, count)), 0U)
            << name_of(reduction.op) << " of " << ranks << " times " << reduction.pre_scale;
      }
    }
  }
}

TYPED_TEST(IntegerOracle, CountsEveryWrongElement) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : integer_reductions(TypeParam::kType)) {
    const Operation operation{reduction, 4, 11};
    auto result = reduced<T>(operation, kCount);
    ++result[0];
    --result[1023];
    result[kCount - 1] = static_cast<T>(result[kCount - 1] ^ 4);
    EXPECT_EQ(wrong_in(operation, result), 3U) << name_of(reduction.op);
  }
}

TYPED_TEST(IntegerOracle, FindsWhatWentWrongAsAWhole) {
  using T = typename TypeParam::Type;
  for (const Reduction& reduction : integer_reductions(TypeParam::kType)) {
    if (reduction.pre_scale == 0) continue;  // always 0
    const Operation operation{reduction, 4, 11};
    const auto inputs = integers_of<T>(operation, kCount);
    const bool extreme = reduction.op == ReduceOp::kMin || reduction.op == ReduceOp::kMax;
    // An extreme shows a rank only where it has it; an average of bytes may be the same.
    const std::size_t most = extreme ? kCount / 5 : kCount / 2;
    auto missing = inputs;
    missing.pop_back();
    EXPECT_GT(wrong_in(operation, reduced(reduction, 4, missing)), most) << name_of(reduction.op);
    auto instead = inputs;
    instead[1] = instead[2];
    EXPECT_GT(wrong_in(operation, reduced(reduction, 4, instead)), most) << name_of(reduction.op);
    if (!extreme) {
      auto doubled = inputs;
      doubled.push_back(inputs[2]);
      EXPECT_GT(wrong_in(operation, reduced(reduction, 4, doubled)), most);
    }
    auto swapped = reduced(reduction, 4, inputs);
    for (std::size_t i = 0; i + 1 < kCount; i += 2) std::swap(swapped[i], swapped[i + 1]);
    EXPECT_GT(wrong_in(operation, swapped), kCount / 2) << name_of(reduction.op);
    const Operation earlier{reduction, 4, 12};
    EXPECT_GT(wrong_in(operation, reduced<T>(earlier, kCount)), kCount / 2);
  }
}

// Sums that wrap are the rule: full-range values, and with 64 ranks nearly always.
TYPED_TEST(IntegerOracle, AveragesHaveSumsThatFit) {
  using T = typename TypeParam::Type;
  for (const unsigned ranks : {2U, 3U, 64U}) {
    const Operation average{{TypeParam::kType, ReduceOp::kAverage}, ranks, 3};
    const Operation sum{{TypeParam::kType, ReduceOp::kSum}, ranks, 3};
    std::size_t wrapped = 0;
    const auto fitting = integers_of<T>(average, kCount);
    const auto full = integers_of<T>(sum, kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      __int128 exact[2] = {0, 0};
      for (unsigned rank = 0; rank < ranks; ++rank) {
        exact[0] += fitting[rank][i];
        exact[1] += full[rank][i];
      }
      ASSERT_TRUE(exact[0] == static_cast<T>(exact[0])) << i;
      wrapped += exact[1] != static_cast<T>(exact[1]) ? 1 : 0;
    }
    EXPECT_GT(wrapped, kCount / 8);
  }
}

template <class Typed>
class ExtremeOracle : public ::testing::Test {};
TYPED_TEST_SUITE(ExtremeOracle, FloatTypes);

template <class T>
std::vector<T> extremes_of(const Operation& operation, unsigned ranks, std::size_t count) {
  auto best = elements_of<T>(operation, 0, count);
  for (unsigned rank = 1; rank < ranks; ++rank) {
    const auto values = elements_of<T>(operation, rank, count);
    for (std::size_t i = 0; i < count; ++i) {
      const bool less = as_exact(values[i]) < as_exact(best[i]);
      if (less == (operation.reduction.op == ReduceOp::kMin)) best[i] = values[i];
    }
  }
  return best;
}

TYPED_TEST(ExtremeOracle, TakesTheExactOneAndNothingElse) {
  using T = typename TypeParam::Type;
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (const unsigned ranks : {1U, 2U, 5U, 64U}) {
      const Operation operation{{TypeParam::kType, op}, ranks, 31};
      EXPECT_EQ(wrong_in(operation, extremes_of<T>(operation, ranks, kCount)), 0U) << ranks;
    }
    const Operation operation{{TypeParam::kType, op}, 4, 31};
    auto result = extremes_of<T>(operation, 4, kCount);
    result[0] = next_up(result[0]);
    result[1] = next_down(result[1]);
    result[1024] = rounded_to<T>(std::numeric_limits<double>::quiet_NaN());
    result[kCount - 1] = rounded_to<T>(std::numeric_limits<double>::infinity());
    EXPECT_EQ(wrong_in(operation, result), 4U);
    EXPECT_GT(wrong_in(operation, extremes_of<T>(operation, 3, kCount)), kCount / 5);
    const Operation earlier{operation.reduction, 4, 32};
    EXPECT_GT(wrong_in(operation, extremes_of<T>(earlier, 4, kCount)), kCount / 2);
    const Operation other{
        {TypeParam::kType, op == ReduceOp::kMin ? ReduceOp::kMax : ReduceOp::kMin}, 4, 31};
    EXPECT_GT(wrong_in(operation, extremes_of<T>(other, 4, kCount)), kCount / 2);
  }
}

TYPED_TEST(ExtremeOracle, ZerosAreEqualWhateverTheirSign) {
  using T = typename TypeParam::Type;
  const Operation operation{{TypeParam::kType, ReduceOp::kMax}, 1, 31};
  auto result = extremes_of<T>(operation, 1, 1U << 16U);
  std::size_t zeros = 0;
  for (T& value : result) {
    if (as_exact(value) != 0) continue;
    value = rounded_to<T>(-0.0);
    ++zeros;
  }
  // Of values of 12 and of 9 bits some are; of 24 and of 53 few or none.
  if (sizeof(T) == 2) {
    EXPECT_GT(zeros, 10U);
  }
  EXPECT_EQ(wrong_in(operation, result), 0U);
}

TEST(Oracle, HashSeesEveryByteAndItsPlace) {
  std::vector<std::byte> bytes(1000);
  for (const std::size_t size : {0, 1, 31, 32, 33, 1000}) {
    const std::span<std::byte> part = std::span(bytes).first(size);
    const std::uint64_t before = hash_bytes(part);
    EXPECT_EQ(before, hash_bytes(std::vector<std::byte>(size)));
    for (std::size_t i = 0; i < size; ++i) {
      part[i] = std::byte{1};
      EXPECT_NE(hash_bytes(part), before) << size << " at " << i;
      part[i] = std::byte{0};
    }
  }
  EXPECT_NE(hash_bytes(std::vector<std::byte>(32)), hash_bytes(std::vector<std::byte>(64)));
}

}  // namespace
}  // namespace erar::bench
