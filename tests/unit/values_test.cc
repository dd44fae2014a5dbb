// The generator: a pure function of seed, rank and index, with the ranges it promises.
#include "workloads/generator/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

namespace erar::workloads {
namespace {

std::vector<std::int32_t> integers(const Stream& stream, std::size_t first, std::size_t count) {
  std::vector<std::int32_t> values(count);
  fill_int32(stream, first, values);
  return values;
}

std::vector<float> floats(const Stream& stream, std::size_t first, std::size_t count) {
  std::vector<float> values(count);
  fill_float32(stream, first, values);
  return values;
}

TEST(Values, AnyPieceIsPartOfTheWhole) {
  const auto whole_int = integers({7, 3}, 0, 5000);
  const auto whole_float = floats({7, 3}, 0, 5000);
  for (const std::size_t first : {0, 1, 7, 1000, 1023, 1024, 1025, 2047, 4999}) {
    for (const std::size_t count : {0, 1, 3, 8, 33, 1024, 1500}) {
      if (first + count > whole_int.size()) continue;
      const auto piece_int = integers({7, 3}, first, count);
      const auto piece_float = floats({7, 3}, first, count);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(piece_int[i], whole_int[first + i]) << first << "+" << i;
        ASSERT_EQ(piece_float[i], whole_float[first + i]) << first << "+" << i;
      }
    }
  }
}

// Results that are kept in files can be recomputed only as long as these do not change.
TEST(Values, AreTheSameOnEveryMachine) {
  const auto values = integers({1, 0}, 0, 3);
  EXPECT_EQ(values, (std::vector<std::int32_t>{994411028, -784476327, -65861284}));
}

TEST(Values, DifferByRankSeedAndOperation) {
  std::set<std::vector<std::int32_t>> seen;
  for (unsigned rank = 0; rank < 64; ++rank) seen.insert(integers({1, rank}, 0, 4));
  for (std::uint64_t seed = 2; seed < 66; ++seed) seen.insert(integers({seed, 0}, 0, 4));
  for (std::uint64_t operation = 0; operation < 64; ++operation) {
    seen.insert(integers({operation_seed(1, operation), 0}, 0, 4));
  }
  EXPECT_EQ(seen.size(), 3U * 64U);
}

TEST(Values, IntegersUseTheFullRange) {
  const auto values = integers({5, 1}, 0, 100'000);
  std::vector<int> ones(32, 0);
  for (const std::int32_t value : values) {
    for (std::size_t bit = 0; bit < 32; ++bit) {
      ones[bit] += static_cast<int>((static_cast<std::uint32_t>(value) >> bit) & 1U);
    }
  }
  // 10 standard deviations of a fair coin thrown 100,000 times.
  for (const int count : ones) EXPECT_NEAR(count, 50'000, 1600);
}

TEST(Values, FloatsAreFiniteNormalAndWithinTheirBlocksScale) {
  std::set<int> exponents;
  for (unsigned rank = 0; rank < 4; ++rank) {
    for (const float value : floats({9, rank}, 0, 200 * kScaleBlock)) {
      ASSERT_TRUE(std::isnormal(value) || value == 0) << value;
      ASSERT_LE(std::fabs(value), 1.0F);
      exponents.insert(std::ilogb(value));
    }
  }
  EXPECT_GT(exponents.size(), 30U);  // blocks differ by up to 2^26
}

TEST(Values, FillTakesBytes) {
  std::vector<std::byte> bytes(10 * 4 + 3);
  fill({4, 2}, DataType::kFloat32, bytes);
  const auto expected = floats({4, 2}, 0, 10);
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), 40), 0);
  EXPECT_EQ(bytes[40], std::byte{0});
  fill({4, 2}, DataType::kInt32, {});  // nothing to do is no error
}

}  // namespace
}  // namespace erar::workloads
