// Ordered lanes: their maximum is the extreme of the floats, on every instruction set the CPU has.
#include "core/numeric/ordered_lanes.h"

#include "tests/unit/instruction_set_fixture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace erar::numeric {
namespace {

constexpr std::array kFloatTypes = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                                    DataType::kFloat64};
constexpr std::array kExtremes = {Extreme::kMin, Extreme::kMax};

// Patterns of any width, in the low bits.
using Patterns = std::vector<std::uint64_t>;

unsigned width_of(DataType type) { return static_cast<unsigned>(8 * size_of(type)); }

std::uint64_t ones(unsigned bits) { return ~std::uint64_t{0} >> (64 - bits); }

unsigned mantissa_bits(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return 10;
    case DataType::kBfloat16:
      return 7;
    case DataType::kFloat64:
      return 52;
    default:
      return 23;
  }
}

std::uint64_t sign_of(DataType type) { return std::uint64_t{1} << (width_of(type) - 1); }

std::uint64_t infinity_of(DataType type) {
  return ones(width_of(type) - 1) & ~ones(mantissa_bits(type));
}

std::uint64_t canonical_nan(DataType type) {
  return infinity_of(type) | std::uint64_t{1} << (mantissa_bits(type) - 1);
}

// The value of a pattern, by its fields and not by its order. Exponents of any bias will do.
long double value_of(DataType type, std::uint64_t pattern) {
  const unsigned bits = mantissa_bits(type);
  const std::uint64_t mantissa = pattern & ones(bits);
  const auto exponent = static_cast<int>((pattern & ones(width_of(type) - 1)) >> bits);
  const bool special = exponent == static_cast<int>(infinity_of(type) >> bits);
  if (special && mantissa != 0) return std::numeric_limits<long double>::quiet_NaN();
  long double magnitude = static_cast<long double>(mantissa);
  if (exponent > 0) {
    magnitude = std::ldexp(magnitude + std::ldexp(1.0L, static_cast<int>(bits)), exponent - 1);
  }
  if (special) magnitude = std::numeric_limits<long double>::infinity();
  return (pattern & sign_of(type)) != 0 ? -magnitude : magnitude;
}

std::vector<unsigned char> pack(DataType type, const Patterns& patterns) {
  std::vector<unsigned char> bytes(patterns.size() * size_of(type));
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    std::memcpy(bytes.data() + i * size_of(type), &patterns[i], size_of(type));
  }
  return bytes;
}

Patterns unpack(DataType type, const std::vector<unsigned char>& bytes) {
  Patterns patterns(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    std::memcpy(&patterns[i], bytes.data() + i * size_of(type), size_of(type));
  }
  return patterns;
}

struct Converted {
  Patterns words;
  bool any_marker;
};

Converted lanes_of(DataType type, Extreme extreme, bool infinities_are_values,
                   const Patterns& patterns) {
  const std::vector<unsigned char> values = pack(type, patterns);
  std::vector<unsigned char> lanes(values.size());
  const bool any = to_ordered(type, extreme, infinities_are_values, values.data(), patterns.size(),
                              lanes.data());
  return {unpack(type, lanes), any};
}

Converted values_of(DataType type, Extreme extreme, const Patterns& lanes) {
  const std::vector<unsigned char> packed = pack(type, lanes);
  std::vector<unsigned char> values(packed.size());
  const bool any = from_ordered(type, extreme, packed.data(), lanes.size(), values.data());
  return {unpack(type, values), any};
}

// All patterns of 16 bits; of wider types edges in all combinations of sign, exponent and mantissa,
// and random ones.
Patterns patterns_of(DataType type, Random& random) {
  Patterns patterns;
  if (width_of(type) == 16) {
    for (std::uint64_t i = 0; i < 65536; ++i) patterns.push_back(i);
    return patterns;
  }
  const unsigned bits = mantissa_bits(type);
  const std::uint64_t last_exponent = infinity_of(type) >> bits;
  for (const std::uint64_t sign : {std::uint64_t{0}, sign_of(type)}) {
    for (const std::uint64_t exponent : {std::uint64_t{0}, std::uint64_t{1}, last_exponent / 2,
                                         last_exponent - 1, last_exponent}) {
      for (const std::uint64_t mantissa : {std::uint64_t{0}, std::uint64_t{1}, ones(bits) - 1,
                                           ones(bits), std::uint64_t{1} << (bits - 1)}) {
        patterns.push_back(sign | exponent << bits | mantissa);
      }
    }
  }
  for (int i = 0; i < 20000; ++i) patterns.push_back(random() & ones(width_of(type)));
  return patterns;
}

bool becomes_marker(DataType type, bool infinities_are_values, std::uint64_t pattern) {
  const long double value = value_of(type, pattern);
  return std::isnan(value) || (!infinities_are_values && std::isinf(value));
}

class OrderedLanesTest : public InstructionSetTest {
 protected:
  // The check for each type and extreme, with infinities as values and not.
  template <class Check>
  void for_each_mode(Check check) {
    for (const DataType type : kFloatTypes) {
      for (const Extreme extreme : kExtremes) {
        for (const bool infinities_are_values : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << name_of(type) << (extreme == Extreme::kMin ? " min" : " max")
                       << infinities_are_values);
          ASSERT_NO_FATAL_FAILURE(check(type, extreme, infinities_are_values));
        }
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, OrderedLanesTest, instruction_sets(),
                         instruction_set_name);

// For 16 bits this is the proof for all patterns.
TEST_P(OrderedLanesTest, OnlyWhatIsNoNumberIsTheMarkerAndNumbersComeBack) {
  for_each_mode([&](DataType type, Extreme extreme, bool infinities_are_values) {
    const Patterns patterns = patterns_of(type, random_);
    const Converted lanes = lanes_of(type, extreme, infinities_are_values, patterns);
    const Converted back = values_of(type, extreme, lanes.words);
    EXPECT_TRUE(lanes.any_marker);
    EXPECT_TRUE(back.any_marker);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const bool marker = becomes_marker(type, infinities_are_values, patterns[i]);
      ASSERT_EQ(lanes.words[i] == ones(width_of(type)), marker) << patterns[i];
      ASSERT_EQ(back.words[i], marker ? canonical_nan(type) : patterns[i]);
    }
  });
}

TEST_P(OrderedLanesTest, LanesAreOrderedAsTheValues) {
  for_each_mode([&](DataType type, Extreme extreme, bool infinities_are_values) {
    Patterns patterns = patterns_of(type, random_);
    std::erase_if(patterns, [=](std::uint64_t pattern) {
      return becomes_marker(type, infinities_are_values, pattern);
    });
    std::sort(patterns.begin(), patterns.end(), [=](std::uint64_t a, std::uint64_t b) {
      const long double first = value_of(type, a);
      const long double second = value_of(type, b);
      return first != second ? first < second : std::signbit(first) && !std::signbit(second);
    });
    patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
    const Converted lanes = lanes_of(type, extreme, infinities_are_values, patterns);
    EXPECT_FALSE(lanes.any_marker);
    EXPECT_FALSE(values_of(type, extreme, lanes.words).any_marker);
    for (std::size_t i = 1; i < patterns.size(); ++i) {
      const bool rises = lanes.words[i - 1] < lanes.words[i];
      ASSERT_EQ(rises, extreme == Extreme::kMax) << patterns[i - 1] << ' ' << patterns[i];
      ASSERT_NE(lanes.words[i - 1], lanes.words[i]);
    }
  });
}

// As one reduces: the maximum of lanes, element by element, over a few ranks.
TEST_P(OrderedLanesTest, MaximumOfLanesIsTheExtremeOfFloats) {
  constexpr std::size_t kCount = 3000;
  constexpr int kRanks = 5;
  for (const Extreme extreme : kExtremes) {
    std::vector<std::vector<float>> inputs(kRanks, std::vector<float>(kCount));
    std::vector<std::uint32_t> largest(kCount);
    for (std::vector<float>& values : inputs) {
      for (float& value : values) {
        const auto bits = static_cast<std::uint32_t>(random_());
        value = std::bit_cast<float>(random_() % 50 == 0 ? bits | 0x7f800000 : bits);
      }
      std::vector<std::uint32_t> lanes(kCount);
      to_ordered(DataType::kFloat32, extreme, true, values.data(), kCount, lanes.data());
      for (std::size_t i = 0; i < kCount; ++i) largest[i] = std::max(largest[i], lanes[i]);
    }
    std::vector<float> results(kCount);
    from_ordered(DataType::kFloat32, extreme, largest.data(), kCount, results.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      float expected = inputs[0][i];
      for (const std::vector<float>& values : inputs) {
        if (std::isnan(expected)) break;
        const float value = values[i];
        const bool better = extreme == Extreme::kMin ? value < expected : value > expected;
        if (better || std::isnan(value)) expected = value;
      }
      if (std::isnan(expected)) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(results[i]), 0x7fc00000U) << i;
      } else {
        ASSERT_EQ(results[i], expected) << i;
      }
    }
  }
}

// One NaN anywhere is told of, and none is when there is none.
TEST_P(OrderedLanesTest, TellsOfAMarkerAtEveryPosition) {
  for_each_mode([&](DataType type, Extreme extreme, bool infinities_are_values) {
    Patterns patterns(203, 0x1234);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      for (const std::uint64_t intruder :
           {infinity_of(type), infinity_of(type) | sign_of(type), infinity_of(type) + 1}) {
        patterns[i] = intruder;
        const bool marker = becomes_marker(type, infinities_are_values, intruder);
        const Converted lanes = lanes_of(type, extreme, infinities_are_values, patterns);
        ASSERT_EQ(lanes.any_marker, marker) << i;
        ASSERT_EQ(values_of(type, extreme, lanes.words).any_marker, marker) << i;
      }
      patterns[i] = 0x1234;
    }
  });
}

TEST_P(OrderedLanesTest, AnyCountUnalignedAndInPlace) {
  for_each_mode([&](DataType type, Extreme extreme, bool infinities_are_values) {
    for (const std::size_t count : kCounts) {
      Patterns patterns(count);
      for (std::uint64_t& pattern : patterns) pattern = random_() & ones(width_of(type));
      const Converted lanes = lanes_of(type, extreme, infinities_are_values, patterns);
      const Converted back = values_of(type, extreme, lanes.words);
      for (std::size_t offset = 0; offset < 9; ++offset) {
        Misaligned<unsigned char> buffer(count * size_of(type), offset);
        buffer.fill(pack(type, patterns));
        ASSERT_EQ(
            to_ordered(type, extreme, infinities_are_values, buffer.data(), count, buffer.data()),
            lanes.any_marker);
        ASSERT_TRUE(buffer.holds(pack(type, lanes.words)));
        ASSERT_EQ(from_ordered(type, extreme, buffer.data(), count, buffer.data()),
                  back.any_marker);
        ASSERT_TRUE(buffer.holds(pack(type, back.words)) && buffer.margin_is_untouched());
      }
    }
  });
}

}  // namespace
}  // namespace erar::numeric
