// The generator: a pure function of seed, rank and index, with the ranges it promises.
#include "workloads/generator/values.h"

#include "core/numeric/half_element.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace erar::workloads {
namespace {

std::vector<std::byte> bytes_of(const Stream& stream, DataType type, std::size_t first,
                                std::size_t count) {
  std::vector<std::byte> bytes(count * size_of(type));
  fill(stream, type, first, bytes);
  return bytes;
}

template <class T>
std::vector<T> values_of(const Stream& stream, DataType type, std::size_t first,
                         std::size_t count) {
  const auto bytes = bytes_of(stream, type, first, count);
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  return values;
}

std::vector<std::int32_t> integers(const Stream& stream, std::size_t count) {
  return values_of<std::int32_t>(stream, DataType::kInt32, 0, count);
}

// All float types' values as doubles, which hold them all.
std::vector<double> floats(const Stream& stream, DataType type, std::size_t count) {
  if (type == DataType::kFloat64) return values_of<double>(stream, type, 0, count);
  std::vector<double> values(count);
  const auto bytes = bytes_of(stream, type, 0, count);
  for (std::size_t i = 0; i < count; ++i) {
    float value = 0;
    if (type == DataType::kFloat32) {
      std::memcpy(&value, bytes.data() + i * 4, 4);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * 2, 2);
      numeric::Float16 half;
      half.bits = bits;
      const float upper = std::bit_cast<float>(std::uint32_t{bits} << 16U);
      value = type == DataType::kFloat16 ? static_cast<float>(half) : upper;
    }
    values[i] = static_cast<double>(value);
  }
  return values;
}

TEST(Values, AnyPieceIsPartOfTheWhole) {
  for (const DataType type : kDataTypes) {
    const std::size_t size = size_of(type);
    const auto whole = bytes_of({7, 3}, type, 0, 5000);
    for (const std::size_t first : {0, 4, 1000, 1020, 1024, 1028, 2048, 4996}) {
      for (const std::size_t count : {1, 3, 8, 33, 1024, 1500}) {
        if (first + count > 5000) continue;
        const auto piece = bytes_of({7, 3}, type, first, count);
        ASSERT_EQ(std::memcmp(piece.data(), whole.data() + first * size, count * size), 0)
            << name_of(type) << " " << first << "+" << count;
      }
    }
  }
}

// Results that are kept in files can be recomputed only as long as these do not change.
TEST(Values, AreTheSameOnEveryMachine) {
  EXPECT_EQ(integers({1, 0}, 3), (std::vector<std::int32_t>{994411028, -784476327, -65861284}));
}

// The loops are compiled for several instruction sets; what they make is defined by plain code.
TEST(Values, FloatsAreTheWordsScaled) {
  constexpr std::size_t kCount = 3000;
  const Stream stream{3, 2, Magnitudes::kAlike};
  const auto words = integers(stream, kCount);
  // All integers are cut from the same bytes; there is no type of 16 bits.
  const auto halves = values_of<std::int16_t>(stream, DataType::kInt32, 0, kCount);
  const auto longs = values_of<std::int64_t>(stream, DataType::kInt64, 0, kCount);
  const auto limit = [&](DataType type, std::size_t i) {
    return magnitude_limit(stream, type, i / kScaleBlock);
  };
  const auto float16 = floats(stream, DataType::kFloat16, kCount);
  const auto bfloat16 = floats(stream, DataType::kBfloat16, kCount);
  const auto float32 = floats(stream, DataType::kFloat32, kCount);
  const auto float64 = floats(stream, DataType::kFloat64, kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(float16[i], (halves[i] >> 4) * 0x1p-11 * limit(DataType::kFloat16, i)) << i;
    ASSERT_EQ(bfloat16[i], (halves[i] >> 7) * 0x1p-8 * limit(DataType::kBfloat16, i)) << i;
    const auto rounded = static_cast<double>(static_cast<float>(words[i]));
    ASSERT_EQ(float32[i], rounded * 0x1p-31 * limit(DataType::kFloat32, i)) << i;
    const auto wide = static_cast<double>(longs[i] >> 10);
    ASSERT_EQ(float64[i], wide * 0x1p-53 * limit(DataType::kFloat64, i)) << i;
  }
}

TEST(Values, DifferByRankSeedAndOperation) {
  for (const DataType type : kDataTypes) {
    std::set<std::string> seen;
    const auto see = [&](const Stream& stream) {
      const auto bytes = bytes_of(stream, type, 0, 16);
      seen.emplace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    for (unsigned rank = 0; rank < 64; ++rank) see({1, rank});
    for (std::uint64_t seed = 2; seed < 66; ++seed) see({seed, 0});
    for (std::uint64_t operation = 0; operation < 64; ++operation) {
      see({operation_seed(1, operation), 0});
    }
    EXPECT_EQ(seen.size(), 3U * 64U) << name_of(type);
  }
}

TEST(Values, IntegersUseTheFullRange) {
  for (const DataType type : kDataTypes) {
    if (is_float(type)) continue;
    const std::size_t bits = 8 * size_of(type);
    const auto bytes = bytes_of({5, 1}, type, 0, 100'000);
    std::vector<int> ones(bits, 0);
    for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
      ones[i % bits] += static_cast<int>(bytes[i / 8] >> (i % 8)) & 1;
    }
    // 10 standard deviations of a fair coin thrown 100,000 times.
    for (const int count : ones) EXPECT_NEAR(count, 50'000, 1600) << name_of(type);
  }
}

template <class T>
void expect_headroom(DataType type) {
  for (const unsigned bits : {0U, 1U, 2U, 6U}) {
    Stream stream{5, 1};
    stream.headroom_bits = bits;
    const auto values = values_of<T>(stream, type, 0, 20'000);
    const auto ranks = static_cast<__int128>(1U << bits);
    T least = 0;
    T most = 0;
    for (const T value : values) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
    EXPECT_TRUE(least * ranks >= std::numeric_limits<T>::min()) << name_of(type) << bits;
    EXPECT_TRUE(most * ranks <= std::numeric_limits<T>::max()) << name_of(type) << bits;
    // And no less than can be: all values of a byte are there, and nearly the largest of others.
    const __int128 limit = std::numeric_limits<T>::max() / ranks;
    EXPECT_TRUE(most >= limit - limit / 100) << name_of(type) << bits;
  }
}

TEST(Values, HeadroomKeepsSumsWithinTheType) {
  expect_headroom<std::int8_t>(DataType::kInt8);
  expect_headroom<std::uint8_t>(DataType::kUint8);
  expect_headroom<std::int32_t>(DataType::kInt32);
  expect_headroom<std::uint32_t>(DataType::kUint32);
  expect_headroom<std::int64_t>(DataType::kInt64);
  expect_headroom<std::uint64_t>(DataType::kUint64);
}

struct FloatRange {
  DataType type;
  double largest;
  int least_normal_exponent;
  int exponents;  // at least so many differ
};

TEST(Values, FloatsAreFiniteNormalAndWithinTheirBlocksScale) {
  for (const FloatRange& range :
       {FloatRange{DataType::kFloat16, 128, -14, 20}, FloatRange{DataType::kBfloat16, 1, -126, 30},
        FloatRange{DataType::kFloat32, 1, -126, 30},
        FloatRange{DataType::kFloat64, 1, -1022, 30}}) {
    std::set<int> exponents;
    std::set<double> limits;
    for (unsigned rank = 0; rank < 4; ++rank) {
      const Stream stream{9, rank};
      const auto values = floats(stream, range.type, 200 * kScaleBlock);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double limit = magnitude_limit(stream, range.type, i / kScaleBlock);
        ASSERT_LE(std::fabs(values[i]), limit) << name_of(range.type);
        ASSERT_LE(limit, range.largest);
        limits.insert(limit);
        if (values[i] == 0) continue;
        ASSERT_GE(std::ilogb(values[i]), range.least_normal_exponent) << name_of(range.type);
        exponents.insert(std::ilogb(values[i]));
      }
    }
    EXPECT_GT(static_cast<int>(exponents.size()), range.exponents) << name_of(range.type);
    EXPECT_EQ(limits.count(range.largest), 1U) << name_of(range.type);
  }
}

// A float that ends in zeros everywhere would not show a backend that drops its last bits.
TEST(Values, FloatsUseAllTheirBits) {
  for (const DataType type : kDataTypes) {
    if (!is_float(type)) continue;
    const std::size_t size = size_of(type);
    const auto bytes = bytes_of({5, 1}, type, 0, 1000);
    int odd = 0;
    for (std::size_t i = 0; i < 1000; ++i) odd += static_cast<int>(bytes[i * size]) & 1;
    EXPECT_GT(odd, 150) << name_of(type);
  }
}

TEST(Values, AScaleSeedKeepsMagnitudesWhileValuesChange) {
  for (const DataType type : kDataTypes) {
    if (!is_float(type)) continue;
    Stream one{1, 2, Magnitudes::kApart};
    Stream other{2, 2, Magnitudes::kApart};
    one.scale_seed = other.scale_seed = 77;
    constexpr std::size_t kBlocks = 40;
    const auto first = floats(one, type, kBlocks * kScaleBlock);
    const auto second = floats(other, type, kBlocks * kScaleBlock);
    EXPECT_NE(first, second);
    std::set<int> exponents;
    for (std::size_t block = 0; block < kBlocks; ++block) {
      EXPECT_EQ(magnitude_limit(one, type, block), magnitude_limit(other, type, block));
      double largest[2] = {0, 0};
      for (std::size_t i = block * kScaleBlock; i < (block + 1) * kScaleBlock; ++i) {
        largest[0] = std::max(largest[0], std::fabs(first[i]));
        largest[1] = std::max(largest[1], std::fabs(second[i]));
      }
      EXPECT_NEAR(largest[0] / largest[1], 1, 0.05) << name_of(type) << " " << block;
      exponents.insert(std::ilogb(largest[0]));
    }
    EXPECT_GT(exponents.size(), 5U);
    other.scale_seed.reset();
    EXPECT_NE(floats(other, type, kBlocks * kScaleBlock), second);
  }
}

TEST(Values, FillLeavesARestAlone) {
  for (const DataType type : kDataTypes) {
    const std::size_t size = size_of(type);
    std::vector<std::byte> bytes(10 * size + size - 1);
    fill({4, 2}, type, 0, bytes);
    const auto expected = bytes_of({4, 2}, type, 0, 10);
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), 10 * size), 0);
    for (std::size_t i = 10 * size; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte{0});
    fill({4, 2}, type, 0, {});  // nothing to do is no error
  }
}

}  // namespace
}  // namespace erar::workloads
