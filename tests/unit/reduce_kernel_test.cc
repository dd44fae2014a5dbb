// The TCP ring's arithmetic: every type with every operation, in any place and instruction set.
#include "emu/baseline/reduce_kernel.h"

#include "core/numeric/instruction_set.h"
#include "tests/unit/element_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace erar {
namespace {

template <class Check>
void on_every_instruction_set(Check check) {
  for (const char* set : {"sse2", "avx2", "avx512"}) {  // the best at last, as it was
    if (!numeric::force_instruction_set(set)) continue;
    SCOPED_TRACE(set);
    check();
  }
}

template <class T>
class Kernel : public ::testing::Test {};

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

constexpr std::size_t kCount = 1021;  // no multiple of a vector, nor of a block

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
    on_every_instruction_set([&] {
      std::vector<T> result(kCount);
      kernel(result.data(), own.data(), arrived.data(), kCount);
      EXPECT_TRUE(same(result, expected)) << name_of(op);
      result = own;
      kernel(result.data(), result.data(), arrived.data(), kCount);
      EXPECT_TRUE(same(result, expected)) << name_of(op) << " over own";
      result = arrived;
      kernel(result.data(), own.data(), result.data(), kCount);
      EXPECT_TRUE(same(result, expected)) << name_of(op) << " over arrived";
    });
  }
}

// Rounding must not carry a NaN's mantissa over: not to infinity, and not to a zero.
TEST(KernelOfHalves, ANaNStaysOne) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const unsigned nan : {0x7fffU, 0xffffU, 0x7f81U, 0xff81U}) {
      const std::vector<std::uint16_t> own(19, static_cast<std::uint16_t>(nan));
      const std::vector<std::uint16_t> arrived(19, 0x3c00);
      on_every_instruction_set([&] {
        std::vector<std::uint16_t> result(own.size());
        combine_kernel(type, ReduceOp::kSum)(result.data(), own.data(), arrived.data(), own.size());
        const unsigned infinity = type == DataType::kFloat16 ? 0x7c00 : 0x7f80;
        for (const std::uint16_t got : result) ASSERT_GT(got & 0x7fffU, infinity) << nan;
      });
    }
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
    on_every_instruction_set([&] {
      auto divided = values;
      divide(TypeParam::kType, divided.data(), kCount, divisor);
      EXPECT_TRUE(same(divided, expected)) << divisor;
    });
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
    on_every_instruction_set([&] {
      std::vector<T> result(kCount);
      scale(TypeParam::kType, result.data(), values.data(), kCount, factor);
      EXPECT_TRUE(same(result, expected)) << factor;
      result = values;
      scale(TypeParam::kType, result.data(), result.data(), kCount, factor);
      EXPECT_TRUE(same(result, expected)) << factor << " in place";
    });
  }
}

}  // namespace
}  // namespace erar
