// float16 and bfloat16 against their definition, on every instruction set the CPU has.
//
// The oracle knows a format by the bits of its mantissa and its range of exponents, and rounds in
// long double.
#include "core/numeric/half.h"

#include "core/numeric/half_element.h"
#include "tests/unit/instruction_set_fixture.h"

#include <bit>
#include <cfloat>
#include <cmath>

namespace erar::numeric {
namespace {

struct Format {
  HalfKind kind;
  int mantissa_bits;
  int bias;  // of the exponent; 1 - bias is the least, and bias the largest
};

constexpr std::array kFormats = {Format{HalfKind::kFloat16, 10, 15},
                                 Format{HalfKind::kBfloat16, 7, 127}};

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

std::uint16_t quiet_nan(const Format& format) {
  return static_cast<std::uint16_t>(0x7fff >> (format.mantissa_bits - 1)
                                                  << (format.mantissa_bits - 1));
}

bool is_nan(const Format& format, std::uint32_t half) {
  return (half & 0x7fff) > ((0x7fffU >> format.mantissa_bits) << format.mantissa_bits);
}

// The value of a pattern that is no NaN, from its three fields.
long double oracle_value(const Format& format, std::uint16_t half) {
  const int mantissa = half & ((1 << format.mantissa_bits) - 1);
  const int exponent = (half & 0x7fff) >> format.mantissa_bits;
  long double magnitude = 0;
  if (exponent == 2 * format.bias + 1) {
    magnitude = INFINITY;
  } else if (exponent == 0) {
    magnitude =
        std::ldexp(static_cast<long double>(mantissa), 1 - format.bias - format.mantissa_bits);
  } else {
    magnitude = std::ldexp(static_cast<long double>(mantissa + (1 << format.mantissa_bits)),
                           exponent - format.bias - format.mantissa_bits);
  }
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// The format's value nearest to a float that is no NaN; of two, the one of even mantissa.
long double oracle_rounded(const Format& format, float value) {
  if (value == 0 || std::isinf(value)) return value;
  const int exponent = std::max(std::ilogb(value), 1 - format.bias);
  const long double rounded = std::ldexp(
      std::rint(std::ldexp(static_cast<long double>(value), format.mantissa_bits - exponent)),
      exponent - format.mantissa_bits);
  if (std::fabs(rounded) >= std::ldexp(1.0L, format.bias + 1)) {
    return std::copysign(static_cast<long double>(INFINITY), rounded);
  }
  return rounded;
}

std::vector<float> to_float(HalfKind kind, const std::vector<std::uint16_t>& values) {
  std::vector<float> out(values.size());
  half_to_float(kind, values.data(), values.size(), out.data());
  return out;
}

std::vector<std::uint16_t> to_half(HalfKind kind, const std::vector<float>& values) {
  std::vector<std::uint16_t> out(values.size());
  float_to_half(kind, values.data(), values.size(), out.data());
  return out;
}

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

// Any pattern, among them NaNs, and often ones about as large as the halves around one.
std::vector<float> any_floats(std::size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) {
    const std::uint64_t draw = random();
    auto bits = static_cast<std::uint32_t>(draw);
    if ((draw >> 32) % 2 == 0) bits = (bits & 0x807fffff) | (100 + (bits >> 23) % 46) << 23;
    std::memcpy(&value, &bits, sizeof value);
  }
  return values;
}

class HalfTest : public InstructionSetTest {};
INSTANTIATE_TEST_SUITE_P(InstructionSets, HalfTest, instruction_sets(), instruction_set_name);

TEST_P(HalfTest, EveryPatternToFloat) {
  for (const Format& format : kFormats) {
    const std::vector<std::uint16_t> halves = all_halves();
    const std::vector<float> floats = to_float(format.kind, halves);
    for (const std::uint16_t half : halves) {
      const std::uint32_t got = bits_of(floats[half]);
      if (is_nan(format, half)) {
        const auto expected = static_cast<std::uint32_t>(half & 0x8000) << 16 | 0x7fc00000U |
                              static_cast<std::uint32_t>(half & ((1 << format.mantissa_bits) - 1))
                                  << (23 - format.mantissa_bits);
        ASSERT_EQ(got, expected) << half;
      } else {
        ASSERT_EQ(got, bits_of(static_cast<float>(oracle_value(format, half)))) << half;
      }
    }
  }
}

TEST_P(HalfTest, EveryPatternComesBack) {
  for (const Format& format : kFormats) {
    std::vector<std::uint16_t> halves = all_halves();
    const std::vector<std::uint16_t> back = to_half(format.kind, to_float(format.kind, halves));
    const std::uint16_t quiet = quiet_nan(format);
    for (const std::uint16_t half : halves) {
      const auto expected = static_cast<std::uint16_t>(is_nan(format, half) ? half | quiet : half);
      ASSERT_EQ(back[half], expected) << half;
    }
  }
}

// Between every two neighbours: half way, where the even one wins, and one float next to it. Above
// the largest number the neighbour is what the next exponent would begin with, and means infinity.
TEST_P(HalfTest, RoundsToNearestEvenBetweenAllNeighbours) {
  for (const Format& format : kFormats) {
    const int infinity = (0x7fff >> format.mantissa_bits) << format.mantissa_bits;
    std::vector<float> floats;
    std::vector<std::uint16_t> expected;
    for (int lower = 0; lower < infinity; ++lower) {
      const long double below = oracle_value(format, static_cast<std::uint16_t>(lower));
      const long double above = lower + 1 < infinity
                                    ? oracle_value(format, static_cast<std::uint16_t>(lower + 1))
                                    : std::ldexp(1.0L, format.bias + 1);
      const auto middle = static_cast<float>((below + above) / 2);
      ASSERT_EQ(middle, (below + above) / 2);
      const std::array<float, 3> around = {std::nextafter(middle, 0.0F), middle,
                                           std::nextafter(middle, INFINITY)};
      const std::array<int, 3> rounded = {lower, lower + lower % 2, lower + 1};
      for (std::size_t i = 0; i < around.size(); ++i) {
        for (const int sign : {0, 0x8000}) {
          floats.push_back(sign != 0 ? -around[i] : around[i]);
          expected.push_back(static_cast<std::uint16_t>(rounded[i] | sign));
        }
      }
    }
    const std::vector<std::uint16_t> got = to_half(format.kind, floats);
    for (std::size_t i = 0; i < floats.size(); ++i) ASSERT_EQ(got[i], expected[i]) << floats[i];
  }
}

TEST_P(HalfTest, AnyFloatMatchesOracle) {
  for (const Format& format : kFormats) {
    std::vector<float> floats = any_floats(200000, random_);
    for (const float edge : {0.0F, FLT_MIN, FLT_TRUE_MIN, FLT_MAX, INFINITY, 65504.0F, 65519.99F,
                             65520.0F, 65536.0F, 0x1p-24F, 0x1p-25F, 0x1.000002p-25F, 0x1p-14F}) {
      floats.push_back(edge);
      floats.push_back(-edge);
    }
    const std::vector<std::uint16_t> halves = to_half(format.kind, floats);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const std::uint32_t bits = bits_of(floats[i]);
      if ((bits & 0x7fffffff) > 0x7f800000) {
        const std::uint32_t payload = (bits & 0x7fffff) >> (23 - format.mantissa_bits);
        ASSERT_EQ(halves[i], (bits >> 16 & 0x8000) | quiet_nan(format) | payload) << bits;
        continue;
      }
      const long double expected = oracle_rounded(format, floats[i]);
      ASSERT_EQ(oracle_value(format, halves[i]), expected) << floats[i];
      ASSERT_EQ(halves[i] >> 15, bits >> 31) << floats[i];
    }
  }
}

TEST_P(HalfTest, AnyCountAndAlignmentAndNothingBeyond) {
  for (const Format& format : kFormats) {
    for (const std::size_t count : kCounts) {
      const std::vector<float> floats = any_floats(count, random_);
      std::vector<std::uint16_t> halves;
      for (const float value : floats) halves.push_back(to_half(format.kind, {value})[0]);
      std::vector<float> back;
      for (const std::uint16_t half : halves) back.push_back(to_float(format.kind, {half})[0]);
      for (std::size_t offset = 0; offset < 9; ++offset) {
        Misaligned<float> wide(count, offset);
        Misaligned<std::uint16_t> narrow(count, offset);
        wide.fill(floats);
        float_to_half(format.kind, wide.data(), count, narrow.data());
        ASSERT_TRUE(narrow.holds(halves) && narrow.margin_is_untouched()) << count;
        half_to_float(format.kind, narrow.data(), count, wide.data());
        ASSERT_TRUE(wide.holds(back) && wide.margin_is_untouched()) << count;
      }
    }
  }
}

TEST_P(HalfTest, CallersFloatingPointModeDoesNotMatter) {
  for (const Format& format : kFormats) {
    const std::vector<std::uint16_t> halves = all_halves();
    const std::vector<float> floats = any_floats(5003, random_);
    const std::vector<float> wide = to_float(format.kind, halves);
    const std::vector<std::uint16_t> narrow = to_half(format.kind, floats);
    for (const unsigned mode : kHostileModes) {
      std::vector<float> wide_there;
      std::vector<std::uint16_t> narrow_there;
      const unsigned after = in_mode(mode, [&] {
        wide_there = to_float(format.kind, halves);
        narrow_there = to_half(format.kind, floats);
      });
      EXPECT_EQ(after, mode);
      EXPECT_TRUE(same_bits(wide, wide_there));
      EXPECT_TRUE(same_bits(narrow, narrow_there));
    }
  }
}

// One element at a time, against other definitions.

// Floats at which rounding to `dropped` fewer bits is decided: each 16-bit pattern in the upper
// half with the lower bits at, just below and just above nothing, a tie and all.
std::vector<float> decisive_floats() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0U, 0x1U, 0xfffU, 0x1000U, 0x1001U, 0x2fffU, 0x3000U,
                                      0x3001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      values.push_back(std::bit_cast<float>(upper << 16U | lower));
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

}  // namespace
}  // namespace erar::numeric
