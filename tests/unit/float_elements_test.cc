// Passes over floats against wider arithmetic and the patterns' definition, on every instruction
// set the CPU has.
#include "core/numeric/float_elements.h"

#include "tests/unit/instruction_set_fixture.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace erar::numeric {
namespace {

// Its 113 bits hold the product of two doubles, and round a quotient to a double as if in one step.
__extension__ using Quad = __float128;

constexpr std::array kFloatTypes = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                                    DataType::kFloat64};

template <class Float>
using BitsOf = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

// A number of any exponent, rarely NaN or infinity.
template <class Float>
std::vector<Float> any_values(std::size_t count, Random& random) {
  std::vector<Float> values(count);
  for (Float& value : values) {
    const auto bits = static_cast<BitsOf<Float>>(random());
    std::memcpy(&value, &bits, sizeof value);
  }
  return values;
}

template <class Float>
std::vector<Float> factors(Random& random) {
  using Limits = std::numeric_limits<Float>;
  std::vector<Float> some = {0,
                             -0.0F,
                             1,
                             -1,
                             Float{1} / 3,
                             Limits::min(),
                             Limits::max(),
                             Limits::denorm_min(),
                             Limits::min() / 3,
                             Limits::max() / 3,
                             64,
                             7};
  for (int i = 0; i < 10; ++i) {
    const Float factor = any_values<Float>(1, random)[0];
    if (std::isfinite(factor)) some.push_back(factor);
  }
  return some;
}

template <class Float>
void expect_equal(Float got, Float expected, Float value, double by) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(got)) << value << ' ' << by;
    return;
  }
  ASSERT_EQ(std::bit_cast<BitsOf<Float>>(got), std::bit_cast<BitsOf<Float>>(expected))
      << value << " and " << by << ": " << got << " instead of " << expected;
}

class FloatElementsTest : public InstructionSetTest {};
INSTANTIATE_TEST_SUITE_P(InstructionSets, FloatElementsTest, instruction_sets(),
                         instruction_set_name);

template <class Float>
void check_arithmetic(Random& random) {
  for (const double by : factors<double>(random)) {
    const std::vector<Float> values = any_values<Float>(3000, random);
    std::vector<Float> scaled(values.size());
    scale(values, by, scaled.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto product = static_cast<double>(Quad{values[i]} * Quad{by});
      ASSERT_NO_FATAL_FAILURE(expect_equal(scaled[i], static_cast<Float>(product), values[i], by));
    }
  }
  for (const Float by : factors<Float>(random)) {
    const std::vector<Float> values = any_values<Float>(3000, random);
    std::vector<Float> divided = values;
    divide(divided, by);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto quotient = static_cast<Float>(Quad{values[i]} / Quad{by});
      ASSERT_NO_FATAL_FAILURE(expect_equal(divided[i], quotient, values[i], by));
    }
  }
}

// Of a float the product is rounded as a double first.
TEST_P(FloatElementsTest, ScaleAndDivideRoundCorrectly) {
  ASSERT_NO_FATAL_FAILURE(check_arithmetic<float>(random_));
  ASSERT_NO_FATAL_FAILURE(check_arithmetic<double>(random_));
}

// Denormals in, denormals out; numbers only, as the bits of NaNs are not promised.
template <class Float>
void check_modes(Random& random) {
  using Limits = std::numeric_limits<Float>;
  std::vector<Float> values(2003);
  for (Float& value : values) {
    value = Limits::denorm_min() * static_cast<Float>(static_cast<std::int32_t>(random()));
  }
  for (const Float by : {Float{3}, Float{1} / 3}) {
    std::vector<Float> scaled(values.size());
    scale(values, by, scaled.data());
    std::vector<Float> divided = values;
    divide(divided, by);
    ASSERT_NE(scaled[0], 0);
    for (const unsigned mode : kHostileModes) {
      std::vector<Float> scaled_there = values;
      std::vector<Float> divided_there = values;
      const unsigned after = in_mode(mode, [&] {
        scale(scaled_there, by, scaled_there.data());
        divide(divided_there, by);
      });
      ASSERT_EQ(after, mode);
      ASSERT_TRUE(same_bits(scaled, scaled_there));
      ASSERT_TRUE(same_bits(divided, divided_there));
    }
  }
}

TEST_P(FloatElementsTest, CallersFloatingPointModeDoesNotMatter) {
  ASSERT_NO_FATAL_FAILURE(check_modes<float>(random_));
  ASSERT_NO_FATAL_FAILURE(check_modes<double>(random_));
}

template <class Float>
void check_places(Random& random) {
  for (const std::size_t count : kCounts) {
    const std::vector<Float> values = any_values<Float>(count, random);
    std::vector<Float> scaled;
    std::vector<Float> divided;
    std::vector<Float> zeroed;
    for (const Float value : values) {
      scaled.push_back(static_cast<Float>(std::isfinite(value) ? 0.3 * double{value} : 0));
      divided.push_back(std::isfinite(value) ? value / Float{0.3F} : 0);
      zeroed.push_back(std::isfinite(value) ? value : 0);
    }
    for (std::size_t offset = 0; offset < 9; ++offset) {
      Misaligned<Float> buffer(count, offset);
      const std::span<Float> inside(buffer.data(), count);
      buffer.fill(values);
      zero_not_finite(inside, buffer.data());
      ASSERT_TRUE(buffer.holds(zeroed) && buffer.margin_is_untouched());
      scale(inside, 0.3, buffer.data());
      ASSERT_TRUE(buffer.holds(scaled) && buffer.margin_is_untouched());
      buffer.fill(zeroed);
      divide(inside, Float{0.3F});
      ASSERT_TRUE(buffer.holds(divided) && buffer.margin_is_untouched());
    }
    std::vector<Float> elsewhere(count);
    zero_not_finite(values, elsewhere.data());
    ASSERT_TRUE(same_bits(elsewhere, zeroed));
  }
}

TEST_P(FloatElementsTest, AnyCountUnalignedAndInPlace) {
  ASSERT_NO_FATAL_FAILURE(check_places<float>(random_));
  ASSERT_NO_FATAL_FAILURE(check_places<double>(random_));
}

TEST_P(FloatElementsTest, ZeroesWhatIsNotFiniteAndKeepsTheRest) {
  const std::vector<float> values = {INFINITY, -INFINITY, NAN,          -NAN, FLT_MAX,
                                     -FLT_MAX, -0.0F,     FLT_TRUE_MIN, -1.0F};
  const std::vector<float> expected = {0, 0, 0, 0, FLT_MAX, -FLT_MAX, -0.0F, FLT_TRUE_MIN, -1.0F};
  std::vector<float> out(values.size());
  zero_not_finite(values, out.data());
  EXPECT_TRUE(same_bits(out, expected));
}

// What is written into a type's array: numbers at the ends of the range, and what is none.
struct Special {
  std::uint64_t infinity;
  std::uint64_t sign;
  std::uint64_t canonical_nan;
};

Special special_of(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {0x7c00, 0x8000, 0x7e00};
    case DataType::kBfloat16:
      return {0x7f80, 0x8000, 0x7fc0};
    case DataType::kFloat64:
      return {0x7ff0000000000000, 0x8000000000000000, 0x7ff8000000000000};
    default:
      return {0x7f800000, 0x80000000, 0x7fc00000};
  }
}

using Bytes = std::vector<unsigned char>;

void put(Bytes& bytes, DataType type, std::size_t index, std::uint64_t pattern) {
  std::memcpy(bytes.data() + index * size_of(type), &pattern, size_of(type));
}

std::uint64_t get(const Bytes& bytes, DataType type, std::size_t index) {
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, bytes.data() + index * size_of(type), size_of(type));
  return pattern;
}

// Finite numbers, the largest ones among them.
Bytes finite(DataType type, std::size_t count, Random& random) {
  const Special special = special_of(type);
  Bytes bytes(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = random();
    const std::uint64_t magnitude =
        draw % 4 == 0 ? special.infinity - 1 : (draw >> 2) % special.infinity;
    put(bytes, type, i, magnitude | (draw >> 1 & 1) * special.sign);
  }
  return bytes;
}

TEST_P(FloatElementsTest, FindsTheFirstThatIsNotFinite) {
  using Kind = Offender::Kind;
  for (const DataType type : kFloatTypes) {
    const Special special = special_of(type);
    const std::array<std::pair<std::uint64_t, Kind>, 6> intruders = {{
        {special.infinity, Kind::kInfinity},
        {special.infinity | special.sign, Kind::kMinusInfinity},
        {special.canonical_nan, Kind::kNaN},
        {special.canonical_nan | special.sign, Kind::kNaN},
        {special.infinity + 1, Kind::kNaN},
        {special.sign - 1, Kind::kNaN},
    }};
    for (const std::size_t count : kCounts) {
      Bytes values = finite(type, count, random_);
      ASSERT_FALSE(first_not_finite(type, values.data(), count).has_value());
      for (std::size_t i = 0; i < count; i += 1 + (count > 100 ? random_() % 37 : 0)) {
        const auto& [pattern, kind] = intruders[random_() % intruders.size()];
        Bytes spoilt = values;
        put(spoilt, type, i, pattern);
        // Others behind it do not matter.
        put(spoilt, type, i + random_() % (count - i), pattern);
        const std::optional<Offender> found = first_not_finite(type, spoilt.data(), count);
        ASSERT_TRUE(found.has_value()) << name_of(type) << ' ' << i;
        ASSERT_EQ(found->index, i) << name_of(type);
        ASSERT_EQ(found->kind, kind) << name_of(type) << ' ' << i;
      }
    }
  }
}

TEST_P(FloatElementsTest, MarksAndSetsNaN) {
  for (const DataType type : kFloatTypes) {
    const Special special = special_of(type);
    for (const std::size_t count : kCounts) {
      Bytes values = finite(type, count, random_);
      Bytes expected_marks(count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t draw = random_();
        if (draw % 3 != 0) continue;
        const std::uint64_t above = (draw >> 8) % (special.sign - special.infinity);
        put(values, type, i,
            special.infinity + above * (draw >> 4 & 1) + (draw >> 5 & 1) * special.sign);
        expected_marks[i] = 1;
      }
      for (std::size_t offset = 0; offset < 5; ++offset) {
        Misaligned<unsigned char> marks(count, offset);
        mark_not_finite(type, values.data(), count, marks.data());
        ASSERT_TRUE(marks.holds(expected_marks) && marks.margin_is_untouched()) << name_of(type);
      }
      // Any mark but 0 counts.
      Bytes marks = expected_marks;
      for (unsigned char& mark : marks)
        mark = static_cast<unsigned char>(mark * (1 + random_() % 255));
      const Bytes before = finite(type, count, random_);
      Bytes expected = before;
      for (std::size_t i = 0; i < count; ++i) {
        if (marks[i] != 0) put(expected, type, i, special.canonical_nan);
        ASSERT_EQ(get(expected, type, i) == special.canonical_nan, marks[i] != 0);
      }
      for (std::size_t offset = 0; offset < 9; ++offset) {
        Misaligned<unsigned char> after(before.size(), offset);
        after.fill(before);
        set_nan(type, marks.data(), count, after.data());
        ASSERT_TRUE(after.holds(expected) && after.margin_is_untouched()) << name_of(type);
      }
    }
  }
}

}  // namespace
}  // namespace erar::numeric
