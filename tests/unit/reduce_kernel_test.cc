// The TCP ring's arithmetic: every 16-bit float, every type with every operation, in any place.
#include "emu/baseline/reduce_kernel.h"

#include "emu/baseline/half_element.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace erar {
namespace {

float of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// Floats at which rounding to `dropped` fewer bits is decided: each 16-bit pattern in the upper
// half with the lower bits at, just below and just above nothing, a tie and all.
std::vector<float> decisive_floats() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0U, 0x1U, 0xfffU, 0x1000U, 0x1001U, 0x2fffU, 0x3000U,
                                      0x3001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      values.push_back(of_bits(upper << 16U | lower));
    }
  }
  return values;
}

TEST(HalfElement, Float16IsTheCompilers) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Float16 element;
    element.bits = static_cast<std::uint16_t>(bits);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(element.bits));
    const auto value = static_cast<float>(element);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(Float16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected)) << bits;
    ASSERT_EQ(Float16(value).bits, bits);
  }
  for (const float value : decisive_floats()) {
    if (std::isnan(value)) continue;
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
    ASSERT_EQ(Float16(value).bits, expected) << value;
  }
}

TEST(HalfElement, Bfloat16IsTheNearestEven) {
  for (const float value : decisive_floats()) {
    const auto rounded = static_cast<float>(Bfloat16(value));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(rounded));
      continue;
    }
    const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t below = all & 0xffff0000U;
    const std::uint32_t above = below + 0x10000U;
    const std::uint32_t rest = all & 0xffffU;
    const bool up = rest > 0x8000U || (rest == 0x8000U && (above & 0x10000U) == 0);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(rounded), up ? above : below) << value;
  }
}

template <class T>
class Kernel : public ::testing::Test {};

template <class T, DataType kGiven>
struct Typed {
  using Type = T;
  static constexpr DataType kType = kGiven;
};
using AllTypes =
    ::testing::Types<Typed<std::int8_t, DataType::kInt8>, Typed<std::uint8_t, DataType::kUint8>,
                     Typed<std::int32_t, DataType::kInt32>, Typed<std::uint32_t, DataType::kUint32>,
                     Typed<std::int64_t, DataType::kInt64>, Typed<std::uint64_t, DataType::kUint64>,
                     Typed<Float16, DataType::kFloat16>, Typed<float, DataType::kFloat32>,
                     Typed<double, DataType::kFloat64>, Typed<Bfloat16, DataType::kBfloat16>>;
TYPED_TEST_SUITE(Kernel, AllTypes);

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T>;

// Integers of all magnitudes and signs, or floats that are not whole.
template <class T>
std::vector<T> values_of(std::uint64_t seed, std::size_t count) {
  std::vector<T> values(count);
  std::uint64_t state = seed;
  for (T& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    if constexpr (kIsInteger<T>) {
      value = static_cast<T>(state >> (64U - 8U * sizeof(T)));
    } else {
      value =
          static_cast<T>(static_cast<float>(static_cast<std::int32_t>(state >> 32U)) * 0x1p-25F);
    }
  }
  return values;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
T sum_of(T a, T b) {
  if constexpr (kIsInteger<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(a) + static_cast<float>(b));
  } else {
    return a + b;
  }
}

template <class T>
bool less(T a, T b) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<float>(a) < static_cast<float>(b);
  } else {
    return a < b;
  }
}

constexpr std::size_t kCount = 1021;  // no multiple of a vector

TYPED_TEST(Kernel, CombinesEveryOperationOutOfPlaceAndOverEitherOperand) {
  using T = typename TypeParam::Type;
  const auto own = values_of<T>(1, kCount);
  const auto arrived = values_of<T>(2, kCount);
  for (const ReduceOp op : kReduceOps) {
    std::vector<T> expected(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const bool own_is_less = less(own[i], arrived[i]);
      if (op == ReduceOp::kMin) expected[i] = own_is_less ? own[i] : arrived[i];
      if (op == ReduceOp::kMax) expected[i] = own_is_less ? arrived[i] : own[i];
      if (op == ReduceOp::kSum || op == ReduceOp::kAverage) {
        expected[i] = sum_of(own[i], arrived[i]);
      }
    }
    const CombineKernel kernel = combine_kernel(TypeParam::kType, op);
    std::vector<T> result(kCount);
    kernel(result.data(), own.data(), arrived.data(), kCount);
    EXPECT_TRUE(same(result, expected)) << name_of(op);
    result = own;
    kernel(result.data(), result.data(), arrived.data(), kCount);
    EXPECT_TRUE(same(result, expected)) << name_of(op) << " over own";
    result = arrived;
    kernel(result.data(), own.data(), result.data(), kCount);
    EXPECT_TRUE(same(result, expected)) << name_of(op) << " over arrived";
  }
}

TYPED_TEST(Kernel, DividesTruncatingIntegersAndRoundingFloats) {
  using T = typename TypeParam::Type;
  for (const unsigned divisor : {1U, 2U, 3U, 7U, 48U, 63U, 64U}) {
    auto values = values_of<T>(3, kCount);
    if constexpr (kIsInteger<T>) {  // where a quotient that is rounded would come out wrong
      values[0] = std::numeric_limits<T>::max();
      values[1] = std::numeric_limits<T>::min();
      values[2] = static_cast<T>(std::numeric_limits<T>::max() / divisor * divisor);
      values[3] = static_cast<T>(values[2] - 1);
    }
    std::vector<T> expected(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      if constexpr (kIsInteger<T>) {
        expected[i] = static_cast<T>(static_cast<__int128>(values[i]) / static_cast<int>(divisor));
      } else if constexpr (sizeof(T) == 2) {
        expected[i] = T(static_cast<float>(values[i]) / static_cast<float>(divisor));
      } else {
        expected[i] = values[i] / static_cast<T>(divisor);
      }
    }
    divide(TypeParam::kType, values.data(), kCount, divisor);
    EXPECT_TRUE(same(values, expected)) << divisor;
  }
}

TYPED_TEST(Kernel, ScalesModuloTheTypesWidthOrRounding) {
  using T = typename TypeParam::Type;
  const auto values = values_of<T>(4, kCount);
  for (const double factor : {0.0, 1.0, -1.0, 3.0, -7.0, 1e15, 0x1p70, 0.3, -1.5}) {
    if (kIsInteger<T> && factor != std::trunc(factor)) continue;
    std::vector<T> expected(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      if constexpr (kIsInteger<T>) {
        const auto whole = factor == 0x1p70 ? 0 : static_cast<std::int64_t>(factor);
        expected[i] = static_cast<T>(static_cast<std::uint64_t>(values[i]) *
                                     static_cast<std::uint64_t>(whole));
      } else if constexpr (sizeof(T) == 2) {
        expected[i] = T(static_cast<float>(static_cast<float>(values[i]) * factor));
      } else {
        expected[i] = static_cast<T>(static_cast<double>(values[i]) * factor);
      }
    }
    std::vector<T> result(kCount);
    scale(TypeParam::kType, result.data(), values.data(), kCount, factor);
    EXPECT_TRUE(same(result, expected)) << factor;
    result = values;
    scale(TypeParam::kType, result.data(), result.data(), kCount, factor);
    EXPECT_TRUE(same(result, expected)) << factor << " in place";
  }
}

}  // namespace
}  // namespace erar
