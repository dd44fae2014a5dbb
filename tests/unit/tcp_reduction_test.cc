// The TCP baseline's types and operations over loopback: every one against its definition, in and
// out of place; what it refuses; and calls that differ.
#include "tests/unit/element_types.h"
#include "tests/unit/loopback_ring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace erar {
namespace {

template <class T>
class TcpReduction : public ::testing::Test {};
TYPED_TEST_SUITE(TcpReduction, AllTypes);

// Whole numbers that are few and small enough for sums in any order to be exact in every type; the
// averages of integers are, too.
constexpr int kLargest = 12;
template <class T>
int input_at(unsigned rank, std::size_t i) {
  const int value = static_cast<int>((i * 7 + rank * 5 + i / 13) % (2 * kLargest + 1)) - kLargest;
  return std::is_unsigned_v<T> ? value + kLargest : value;
}

template <class T>
T element(double value) {
  if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(value));  // modulo the width, or truncated
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
std::vector<T> inputs_of(unsigned rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element<T>(input_at<T>(rank, i));
  return values;
}

template <class T>
std::vector<T> expected_of(const Reduction& reduction, unsigned ranks, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    int sum = 0;
    int least = input_at<T>(0, i);
    int most = least;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      sum += input_at<T>(rank, i);
      least = std::min(least, input_at<T>(rank, i));
      most = std::max(most, input_at<T>(rank, i));
    }
    if (reduction.op == ReduceOp::kSum) values[i] = element<T>(sum * reduction.pre_scale);
    if (reduction.op == ReduceOp::kMin) values[i] = element<T>(least);
    if (reduction.op == ReduceOp::kMax) values[i] = element<T>(most);
    if (reduction.op != ReduceOp::kAverage) continue;
    // Divided in the type, as floats are rounded by it.
    if constexpr (std::is_same_v<T, float>) {
      values[i] = static_cast<float>(sum) / static_cast<float>(ranks);
    } else {
      values[i] = element<T>(static_cast<double>(sum) / ranks);
    }
  }
  return values;
}

// -0 and 0 are the same here, so values are compared and not bytes.
template <class T>
std::size_t differing(const std::vector<T>& a, const std::vector<T>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if constexpr (sizeof(T) == 2) {
      count += static_cast<float>(a[i]) != static_cast<float>(b[i]) ? 1 : 0;
    } else {
      count += a[i] != b[i] ? 1 : 0;
    }
  }
  return count;
}

TYPED_TEST(TcpReduction, FollowsItsDefinition) {
  using T = typename TypeParam::Type;
  constexpr DataType kType = TypeParam::kType;
  const std::vector<Reduction> reductions = {
      {kType, ReduceOp::kSum}, {kType, ReduceOp::kSum, 2},  {kType, ReduceOp::kSum, -3},
      {kType, ReduceOp::kMin}, {kType, ReduceOp::kAverage}, {kType, ReduceOp::kMax}};
  for (const unsigned ranks : {1U, 2U, 5U}) {
    Backends backends = open_ring(ranks, test_options());
    ASSERT_TRUE(complete(backends));
    on_all_ranks(ranks, [&](unsigned rank) {
      for (const Reduction& reduction : reductions) {
        // Fewer than ranks, so that some chunks are empty; some; and enough for zero copy.
        for (const std::size_t count :
             {std::size_t{0}, std::size_t{3}, std::size_t{4099}, 2'100'000 / sizeof(T)}) {
          const auto expected = expected_of<T>(reduction, ranks, count);
          const auto input = inputs_of<T>(rank, count);
          std::vector<T> kept = input;
          std::vector<T> output(count);
          auto done = backends[rank]->allreduce(kept.data(), output.data(), count, reduction);
          ASSERT_TRUE(done) << done.error().message();
          EXPECT_EQ(differing(output, expected), 0U)
              << name_of(reduction.op) << " times " << reduction.pre_scale << ", " << count;
          EXPECT_EQ(differing(kept, input), 0U) << "the input of " << name_of(reduction.op);
          done = backends[rank]->allreduce(kept.data(), kept.data(), count, reduction);
          ASSERT_TRUE(done) << done.error().message();
          EXPECT_EQ(differing(kept, expected), 0U)
              << name_of(reduction.op) << " times " << reduction.pre_scale << ", in place";
        }
      }
    });
  }
}

// The documented limit: as in other rings, an average that is taken of a wrapped sum is wrong.
TEST(TcpReductions, AnIntegerAverageIsOfTheSumThatWraps) {
  Backends backends = open_ring(2, test_options());
  ASSERT_TRUE(complete(backends));
  on_all_ranks(2, [&](unsigned rank) {
    std::int8_t values[2] = {100, static_cast<std::int8_t>(rank == 0 ? -100 : 93)};
    auto done = backends[rank]->allreduce(values, values, 2, {DataType::kInt8, ReduceOp::kAverage});
    ASSERT_TRUE(done);
    EXPECT_EQ(values[0], (200 - 256) / 2);
    EXPECT_EQ(values[1], -3);  // -7 / 2, towards zero
  });
}

TEST(TcpReductions, SixteenBitFloatsAreRoundedAtEachHop) {
  Backends backends = open_ring(3, test_options());
  ASSERT_TRUE(complete(backends));
  on_all_ranks(3, [&](unsigned rank) {
    // 2048 + 1 is a tie that goes to 2048, twice; rounded once it would be 2050. Whoever of the
    // three begins, the first two added are 2048 + 1 or 1 + 1.
    Float16 value(rank == 0 ? 2048.0F : 1.0F);
    auto done = backends[rank]->allreduce(&value, &value, 1, {DataType::kFloat16, ReduceOp::kSum});
    ASSERT_TRUE(done);
    EXPECT_EQ(static_cast<float>(value), 2048.0F);  // its one chunk begins at rank 0
    Bfloat16 other(rank == 0 ? 256.0F : 1.0F);
    done = backends[rank]->allreduce(&other, &other, 1, {DataType::kBfloat16, ReduceOp::kSum});
    ASSERT_TRUE(done);
    EXPECT_EQ(static_cast<float>(other), 256.0F);
  });
}

TEST(TcpReductions, NanAndInfinityAreIeees) {
  for (const NotFinite not_finite : {NotFinite::kRefuse, NotFinite::kPropagate}) {
    Backends backends = open_ring(2, test_options());
    ASSERT_TRUE(complete(backends));
    on_all_ranks(2, [&](unsigned rank) {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      float values[3] = {rank == 0 ? std::nanf("") : 1.0F, rank == 0 ? kInfinity : 1.0F,
                         rank == 0 ? kInfinity : -kInfinity};
      const Reduction sum{DataType::kFloat32, ReduceOp::kSum, 1, not_finite};
      auto done = backends[rank]->allreduce(values, values, 3, sum);
      ASSERT_TRUE(done);
      EXPECT_TRUE(std::isnan(values[0]));
      EXPECT_EQ(values[1], kInfinity);
      EXPECT_TRUE(std::isnan(values[2]));
    });
  }
}

TEST(TcpReductions, WhatIsRefusedSaysWhyAndLeavesTheRingInOrder) {
  Backends backends = open_ring(2, test_options());
  ASSERT_TRUE(complete(backends));
  struct Refused {
    Reduction reduction;
    const char* text;
  };
  Reduction compressed{DataType::kFloat32, ReduceOp::kSum};
  compressed.compressed = true;
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Refused> all = {
      {compressed, "tcp: compressed reductions are not supported"},
      {{DataType::kFloat32, ReduceOp::kAverage, 2}, "pre_scale 2 is for sums, not for avg"},
      {{DataType::kInt8, ReduceOp::kMin, 2}, "pre_scale 2 is for sums, not for min"},
      {{DataType::kFloat64, ReduceOp::kMax, 0.5}, "pre_scale 0.5 is for sums, not for max"},
      {{DataType::kUint64, ReduceOp::kSum, 2.5}, "pre_scale 2.5 is no whole number, as uint64"},
      {{DataType::kFloat16, ReduceOp::kSum, infinity}, "pre_scale inf is not finite"}};
  on_all_ranks(2, [&](unsigned rank) {
    double value = 1;
    for (const Refused& refused : all) {
      const auto done = backends[rank]->allreduce(&value, &value, 1, refused.reduction);
      ASSERT_FALSE(done) << refused.text;
      EXPECT_NE(done.error().message().find(refused.text), std::string::npos)
          << done.error().message();
      EXPECT_EQ(value, 1);
    }
    auto done =
        backends[rank]->allreduce(&value, &value, 1, {DataType::kFloat64, ReduceOp::kSum, 0.5});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(value, 1);
  });
}

// Each of the two says what the other calls and what it calls itself, in what they differ.
TEST(TcpReductions, DifferingCallsAreErrorsThatNameTheDifference) {
  struct Differing {
    Reduction first;
    Reduction second;
    const char* theirs;
    const char* ours;
  };
  const Reduction sum{DataType::kFloat32, ReduceOp::kSum};
  const Reduction propagating{DataType::kFloat32, ReduceOp::kSum, 1, NotFinite::kPropagate};
  const std::vector<Differing> all = {
      {sum, {DataType::kFloat32, ReduceOp::kMax}, "max of 4 float32 as", "sum of 4 float32 as"},
      {{DataType::kFloat16, ReduceOp::kMin},
       {DataType::kBfloat16, ReduceOp::kMin},
       "min of 4 bfloat16 as",
       "min of 4 float16 as"},
      {{DataType::kUint8, ReduceOp::kAverage},
       {DataType::kInt64, ReduceOp::kSum},
       "sum of 4 int64 as",
       "avg of 4 uint8 as"},
      {sum,
       {DataType::kFloat32, ReduceOp::kSum, 0.5},
       "sum of 4 float32 times 0.5 as",
       "sum of 4 float32 times 1 as"},
      {sum, propagating, "sum of 4 float32 propagating NaN as",
       "sum of 4 float32 refusing NaN as"}};
  for (const Differing& differing : all) {
    Backends backends = open_ring(2, test_options());
    ASSERT_TRUE(complete(backends));
    std::vector<std::optional<Error>> errors(2);
    on_all_ranks(2, [&](unsigned rank) {
      std::uint64_t values[4] = {};
      auto done = backends[rank]->allreduce(values, values, 4,
                                            rank == 0 ? differing.first : differing.second);
      if (!done) errors[rank] = done.error();
    });
    expect_error(errors[0], EPROTO, std::string("rank 1 calls ") + differing.theirs);
    expect_error(errors[0], EPROTO, std::string("this rank ") + differing.ours);
    expect_error(errors[1], EPROTO, std::string("rank 0 calls ") + differing.ours);
    expect_error(errors[1], EPROTO, std::string("this rank ") + differing.theirs);
  }
}

}  // namespace
}  // namespace erar
