// The oracle: accepts what a correct ring may return, and nothing else.
#include "experiments/bench/oracle.h"

#include "core/numeric/block_float.h"
#include "workloads/generator/values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace erar::bench {
namespace {

template <class T>
std::uint64_t wrong_in(const Operation& operation, const std::vector<T>& result) {
  return count_wrong(operation, std::as_bytes(std::span<const T>(result)));
}

std::vector<std::int32_t> int_sum(const Operation& operation, std::size_t count) {
  std::vector<std::uint32_t> sum(count);
  std::vector<std::int32_t> values(count);
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    workloads::fill_int32({operation.seed, rank}, 0, values);
    for (std::size_t i = 0; i < count; ++i) sum[i] += static_cast<std::uint32_t>(values[i]);
  }
  std::vector<std::int32_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::int32_t>(sum[i]);
  return result;
}

// As a ring of float additions does it, starting at `start` (each block of a ring starts
// elsewhere).
std::vector<float> float_ring_sum(const Operation& operation, std::size_t count, unsigned start) {
  std::vector<float> sum(count);
  std::vector<float> values(count);
  for (unsigned hop = 0; hop < operation.ranks; ++hop) {
    workloads::fill_float32({operation.seed, (start + hop) % operation.ranks}, 0, values);
    for (std::size_t i = 0; i < count; ++i) sum[i] = hop == 0 ? values[i] : sum[i] + values[i];
  }
  return sum;
}

std::vector<float> block_float_sum(const Operation& operation, std::size_t count) {
  std::vector<std::vector<float>> inputs(operation.ranks, std::vector<float>(count));
  std::vector<numeric::Exponent> agreed(numeric::exponent_count(count));
  std::vector<numeric::Exponent> own(agreed.size());
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    workloads::fill_float32({operation.seed, rank}, 0, inputs[rank]);
    numeric::block_exponents(inputs[rank], own);
    for (std::size_t i = 0; i < own.size(); ++i) agreed[i] = std::max(agreed[i], own[i]);
  }
  std::vector<std::uint32_t> sum(count);
  std::vector<std::uint32_t> lanes(count);
  for (const auto& input : inputs) {
    numeric::quantise(input, agreed, operation.ranks, lanes.data());
    for (std::size_t i = 0; i < count; ++i) sum[i] += lanes[i];
  }
  std::vector<float> result(count);
  numeric::dequantise(sum.data(), agreed, operation.ranks, result);
  return result;
}

constexpr std::size_t kCount = 5 * 1024 + 77;

TEST(Oracle, ExactIntegerSumsAreRight) {
  for (const unsigned ranks : {1U, 2U, 3U, 5U, 8U, 64U}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1024}, kCount}) {
      const Operation operation{DataType::kInt32, ranks, 11};
      EXPECT_EQ(wrong_in(operation, int_sum(operation, count)), 0U) << ranks << " " << count;
    }
  }
}

TEST(Oracle, EveryWrongIntegerIsCounted) {
  const Operation operation{DataType::kInt32, 4, 11};
  auto result = int_sum(operation, kCount);
  result[0] ^= 1;
  result[1023] ^= 1 << 30;
  result[kCount - 1] ^= 4;
  EXPECT_EQ(wrong_in(operation, result), 3U);
}

TEST(Oracle, TheSumOfAnotherOperationOrTooFewRanksIsWrong) {
  const Operation operation{DataType::kInt32, 4, 11};
  EXPECT_GT(wrong_in(operation, int_sum({DataType::kInt32, 4, 12}, kCount)), kCount - 5);
  EXPECT_GT(wrong_in(operation, int_sum({DataType::kInt32, 3, 11}, kCount)), kCount - 5);
  const Operation floats{DataType::kFloat32, 4, 11};
  EXPECT_GT(wrong_in(floats, float_ring_sum({DataType::kFloat32, 3, 11}, kCount, 0)),
            kCount * 9 / 10);
}

TEST(Oracle, FloatRingsOfAnyOrderAreRight) {
  for (const unsigned ranks : {2U, 3U, 4U, 8U, 64U}) {
    const Operation operation{DataType::kFloat32, ranks, 21};
    for (unsigned start = 0; start < ranks; ++start) {
      EXPECT_EQ(wrong_in(operation, float_ring_sum(operation, kCount, start)), 0U)
          << ranks << " ranks from " << start;
    }
  }
}

TEST(Oracle, BlockFloatingPointIsRight) {
  for (const unsigned ranks : {1U, 2U, 3U, 4U, 5U, 8U, 9U, 33U, 64U}) {
    const Operation operation{DataType::kFloat32, ranks, 22};
    EXPECT_EQ(wrong_in(operation, block_float_sum(operation, kCount)), 0U) << ranks << " ranks";
  }
}

TEST(Oracle, NanInfinityAndSmallErrorsAreWrong) {
  const Operation operation{DataType::kFloat32, 4, 23};
  auto result = float_ring_sum(operation, kCount, 0);
  result[3] = std::numeric_limits<float>::quiet_NaN();
  result[4] = std::numeric_limits<float>::infinity();
  result[5] = -std::numeric_limits<float>::infinity();
  // One part in 100,000 of the block's largest magnitude: 16 bits of 24 would pass this, 20 do not.
  float largest = 0;
  for (std::size_t i = 0; i < 1024; ++i) {
    if (std::isfinite(result[i])) largest = std::max(largest, std::fabs(result[i]));
  }
  result[6] += largest * 1e-5F;
  result[7] -= largest * 1e-5F;
  EXPECT_EQ(wrong_in(operation, result), 5U);
}

TEST(Oracle, BoundFollowsItsDefinition) {
  // 4 ranks, largest magnitude in [1, 2): exponent 127, 2 guard bits, so a step is 2^-28; 2 steps.
  const FloatSumBound bound(4, 1.5F);
  EXPECT_NEAR(bound.of(0, 0), 2 * 0x1p-28, 0x1p-45);
  EXPECT_NEAR(bound.of(3, 0), 2 * 0x1p-28 + 3 * 0x1p-24, 0x1p-45);
  EXPECT_NEAR(bound.of(-3, 6), 3 * 0x1p-24 * 6, 0x1p-40);  // three roundings of at most 6
  EXPECT_EQ(FloatSumBound(64, 0).of(0, 0), 0);
  // A block of denormals has a step of its own: 2^-(157 - 1 - 1) for 2 ranks.
  EXPECT_NEAR(FloatSumBound(2, 0x1p-149F).of(0, 0), 0x1p-150 + 0x1p-155, 0x1p-170);
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
