// Block floating point of doubles against an exact oracle, on every instruction set the CPU has.
//
// The oracle scales in long double: its 64-bit mantissa and 15-bit exponent hold every value, lane
// and signed sum here exactly, so each lane and each result is compared bit for bit.
#include "core/numeric/block_double.h"

#include "tests/unit/instruction_set_fixture.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>

namespace erar::numeric {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

constexpr std::array<unsigned, 10> kRankCounts = {1, 2, 3, 4, 5, 8, 17, 33, 63, 64};

using Values = std::vector<double>;
using Lanes = std::vector<std::uint64_t>;
using Exponents = std::vector<Exponent>;

int guard_bits_of(unsigned ranks) {
  int guard = 0;
  while ((1U << guard) < ranks) ++guard;
  return guard;
}

std::uint64_t bias_of(unsigned ranks) { return std::uint64_t{1} << (63 - guard_bits_of(ranks)); }

// The largest s that keeps the block's largest double at most bias - 1, found by trying.
int scale_of(Exponent exponent, unsigned ranks) {
  const long double largest = std::ldexp(2.0L - 0x1p-52L, exponent - 1023);
  int scale = 1100 - exponent;
  while (std::ldexp(largest, scale) > static_cast<long double>(bias_of(ranks) - 1)) --scale;
  return scale;
}

Exponent oracle_exponent(std::span<const double> block) {
  double largest = 0;
  for (const double value : block) {
    if (!std::isfinite(value)) return kNotFiniteDouble;
    largest = std::max(largest, std::fabs(value));
  }
  if (largest == 0) return 0;
  return static_cast<Exponent>(std::max(std::ilogb(largest) + 1023, 1));
}

std::uint64_t oracle_lane(double value, Exponent exponent, unsigned ranks) {
  if (exponent == 0) return bias_of(ranks);
  const long double scaled = std::ldexp(static_cast<long double>(value), scale_of(exponent, ranks));
  return bias_of(ranks) + static_cast<std::uint64_t>(std::llrint(scaled));
}

double oracle_value(Wide sum, Exponent exponent, unsigned ranks) {
  const auto signed_sum =
      static_cast<SignedWide>(sum) - static_cast<SignedWide>(Wide{bias_of(ranks)} * ranks);
  if (signed_sum == 0 || exponent == 0) return 0.0;
  return static_cast<double>(
      std::ldexp(static_cast<long double>(signed_sum), -scale_of(exponent, ranks)));
}

double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }

double random_sign(double magnitude, Random& random) {
  return (random() & 1) != 0 ? -magnitude : magnitude;
}

constexpr std::uint64_t kSignAndMantissa = 0x800fffffffffffff;

double any_finite(Random& random) {
  return from_bits((random() & kSignAndMantissa) | (random() % 2047) << 52);
}

// Values of one kind; each kind is a case that could be handled wrongly.
struct Pattern {
  const char* name;
  std::function<double(Random&)> draw;
};

Pattern around(const char* name, int power) {
  return {name, [power](Random& random) {
            const std::uint64_t bits = random();
            return std::ldexp(from_bits((bits & kSignAndMantissa) | std::uint64_t{1023} << 52),
                              power + static_cast<int>(random() % 4) - 2);
          }};
}

std::vector<Pattern> patterns() {
  return {
      {"gradients",
       [](Random& random) { return std::normal_distribution<double>(0.0, 1e-3)(random); }},
      {"zeros", [](Random& random) { return random_sign(0.0, random); }},
      {"any finite", any_finite},
      // 64-bit lanes under one exponent hold these whole, or cut them at any bit.
      {"100 binades",
       [](Random& random) {
         return std::ldexp(from_bits((random() & kSignAndMantissa) | std::uint64_t{1023} << 52),
                           -static_cast<int>(random() % 100));
       }},
      {"halves of steps",
       [](Random& random) {
         // Small odd multiples of powers of two: many ties.
         return std::ldexp(static_cast<double>(static_cast<std::int64_t>(random() % 64) - 32),
                           static_cast<int>(random() % 70) - 70);
       }},
      {"denormals", [](Random& random) { return from_bits(random() & kSignAndMantissa); }},
      {"few denormal bits",
       [](Random& random) { return from_bits(random() & 0x8000000000000007); }},
      {"DBL_MAX", [](Random&) { return DBL_MAX; }},
      {"+-DBL_MAX", [](Random& random) { return random_sign(DBL_MAX, random); }},
      {"sparse", [](Random& random) { return random() % 8 == 0 ? any_finite(random) : 0.0; }},
      // On both sides of where the exact path begins and ends: exponents 58 to 64.
      around("2^-968", -968),
      around("2^-963", -963),
      around("2^-960", -960),
      around("2^-1020", -1020),
  };
}

Values draw(const Pattern& pattern, std::size_t count, Random& random) {
  Values values(count);
  for (double& value : values) value = pattern.draw(random);
  return values;
}

Exponents exponents_of(std::span<const double> values) {
  Exponents exponents(exponent_count(values.size()));
  block_exponents(values, exponents);
  return exponents;
}

Exponents agreed_exponents(const std::vector<Values>& ranks) {
  Exponents agreed = exponents_of(ranks.front());
  for (const Values& values : ranks) {
    const Exponents own = exponents_of(values);
    for (std::size_t i = 0; i < own.size(); ++i) agreed[i] = std::max(agreed[i], own[i]);
  }
  return agreed;
}

Lanes lanes_of(std::span<const double> values, const Exponents& exponents, unsigned ranks) {
  Lanes lanes(values.size());
  quantise(values, exponents, ranks, lanes.data());
  return lanes;
}

Values values_of(const Lanes& lanes, const Exponents& exponents, unsigned ranks) {
  Values values(lanes.size());
  dequantise(lanes.data(), exponents, ranks, values);
  return values;
}

class BlockDoubleTest : public InstructionSetTest {};
INSTANTIATE_TEST_SUITE_P(InstructionSets, BlockDoubleTest, instruction_sets(),
                         instruction_set_name);

// One reduction of `ranks` buffers, every step compared with the oracle.
void check_reduction(const std::vector<Values>& inputs) {
  const auto ranks = static_cast<unsigned>(inputs.size());
  const std::size_t count = inputs.front().size();
  const Exponents exponents = agreed_exponents(inputs);
  std::vector<Wide> wide_sum(count);
  Lanes sum(count);
  for (const Values& values : inputs) {
    const Lanes lanes = lanes_of(values, exponents, ranks);
    for (std::size_t i = 0; i < count; ++i) {
      const Exponent exponent = exponents[i / kExponentBlock];
      ASSERT_EQ(lanes[i], oracle_lane(values[i], exponent, ranks))
          << "element " << i << " = " << values[i];
      // Exact: both sides of the difference are close, or the lane is 0.
      const auto integer = static_cast<std::int64_t>(lanes[i] - bias_of(ranks));
      const long double step = exponent == 0 ? 0 : std::ldexp(1.0L, -scale_of(exponent, ranks));
      ASSERT_LE(std::fabs(static_cast<long double>(integer) * step - values[i]), step / 2);
      wide_sum[i] += lanes[i];
      sum[i] += lanes[i];
    }
  }
  const Values results = values_of(sum, exponents, ranks);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(wide_sum[i] == sum[i]) << "lane " << i << " overflowed";
    const double expected = oracle_value(wide_sum[i], exponents[i / kExponentBlock], ranks);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(results[i]), std::bit_cast<std::uint64_t>(expected))
        << "element " << i << ": " << results[i] << " instead of " << expected;
  }
}

TEST_P(BlockDoubleTest, MatchesOracleForEveryCount) {
  for (const Pattern& pattern : patterns()) {
    for (const std::size_t count : kCounts) {
      for (const unsigned ranks : {1U, 3U, 4U}) {
        SCOPED_TRACE(testing::Message() << pattern.name << ", " << count << " x " << ranks);
        std::vector<Values> inputs(ranks);
        for (Values& values : inputs) values = draw(pattern, count, random_);
        ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
      }
    }
  }
}

TEST_P(BlockDoubleTest, MatchesOracleForEveryRankCount) {
  for (const Pattern& pattern : patterns()) {
    for (unsigned ranks = 1; ranks <= 64; ++ranks) {
      SCOPED_TRACE(testing::Message() << pattern.name << " x " << ranks);
      std::vector<Values> inputs(ranks);
      for (Values& values : inputs) values = draw(pattern, 35, random_);
      ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
    }
  }
}

// Ranks of one ring whose magnitudes differ: most of them must quantise far below their own scale.
TEST_P(BlockDoubleTest, MatchesOracleForUnlikeRanks) {
  const std::vector<Pattern> kinds = patterns();
  for (int round = 0; round < 50; ++round) {
    std::vector<Values> inputs(1 + random_() % 8);
    for (Values& values : inputs) values = draw(kinds[random_() % kinds.size()], 1040, random_);
    ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
  }
}

TEST_P(BlockDoubleTest, WorstCaseNeverOverflows) {
  for (unsigned ranks = 1; ranks <= 64; ++ranks) {
    for (std::uint64_t exponent = 1; exponent <= 2046; ++exponent) {
      const double largest = from_bits(exponent << 52 | 0xfffffffffffff);
      const Values values = {largest, -largest, largest, largest, -largest};
      const Exponents exponents = exponents_of(values);
      ASSERT_EQ(exponents.front(), exponent);
      const Lanes lanes = lanes_of(values, exponents, ranks);
      Lanes sum(lanes.size());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        ASSERT_TRUE(Wide{lanes[i]} * ranks < Wide{1} << 64) << ranks;
        sum[i] = lanes[i] * ranks;
      }
      const Values results = values_of(sum, exponents, ranks);
      ASSERT_EQ(results[0], static_cast<double>(static_cast<long double>(largest) * ranks));
      ASSERT_EQ(results[1], -results[0]);
    }
  }
}

// Where flushing a denormal to zero, or rounding twice, would show: each exponent with the smallest
// values that still count, and with sums about to lose bits.
TEST_P(BlockDoubleTest, EveryExponentWithTheSmallestValuesAndAwkwardSums) {
  const Values smallest = {from_bits(1),
                           from_bits(0x8000000000000001),
                           from_bits(0x8000000000000),
                           from_bits(0x8000000000001),
                           from_bits(0xfffffffffffff),
                           from_bits(0x10000000000000),
                           from_bits(0x10000000000001),
                           0.0};
  const std::array<std::int64_t, 14> sums = {0,
                                             1,
                                             -1,
                                             3,
                                             -1024,
                                             1025,
                                             (1LL << 31),
                                             -(1LL << 31) - 1,
                                             (1LL << 53) + 1,
                                             -(1LL << 54) - 3,
                                             (1LL << 62) + (1LL << 9),
                                             -(1LL << 62) - (1LL << 9) - 1,
                                             (1LL << 62) - 1,
                                             0x1fffffffffffff00};
  for (const unsigned ranks : kRankCounts) {
    for (unsigned exponent = 1; exponent <= 2046; ++exponent) {
      const Exponents exponents = {static_cast<Exponent>(exponent)};
      const Lanes lanes = lanes_of(smallest, exponents, ranks);
      for (std::size_t i = 0; i < smallest.size(); ++i) {
        ASSERT_EQ(lanes[i], oracle_lane(smallest[i], exponents[0], ranks)) << exponent << ' ' << i;
      }
      Lanes summed;
      for (const std::int64_t sum : sums) {
        summed.push_back(ranks * bias_of(ranks) + static_cast<std::uint64_t>(sum));
      }
      const Values results = values_of(summed, exponents, ranks);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const long double exact =
            std::ldexp(static_cast<long double>(sums[i]), -scale_of(exponents[0], ranks));
        ASSERT_EQ(results[i], static_cast<double>(exact)) << exponent << ' ' << i;
      }
    }
  }
}

TEST_P(BlockDoubleTest, OverflowIsInfinity) {
  const Values values = {DBL_MAX, -DBL_MAX, 1.0, DBL_MAX / 2};
  const Exponents exponents = exponents_of(values);
  Lanes sum = lanes_of(values, exponents, 2);
  for (std::uint64_t& lane : sum) lane *= 2;
  const Values results = values_of(sum, exponents, 2);
  EXPECT_EQ(results[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(results[1], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(results[2], 0.0);
  EXPECT_EQ(results[3], DBL_MAX);
}

TEST_P(BlockDoubleTest, ExponentsMatchOracle) {
  for (const Pattern& pattern : patterns()) {
    for (const std::size_t count : kCounts) {
      const Values values = draw(pattern, count, random_);
      const Exponents exponents = exponents_of(values);
      for (std::size_t i = 0; i < exponents.size(); ++i) {
        const std::size_t first = i * kExponentBlock;
        const auto block =
            std::span(values).subspan(first, std::min(kExponentBlock, count - first));
        ASSERT_EQ(exponents[i], oracle_exponent(block)) << pattern.name << " block " << i;
      }
    }
  }
}

// Among them values whose upper half has no bit beside the sign.
TEST_P(BlockDoubleTest, FindsEveryKindAtEveryPosition) {
  struct Intruder {
    std::uint64_t bits;
    Exponent exponent;
  };
  constexpr std::array kIntruders = {Intruder{0x7ff0000000000000, kNotFiniteDouble},
                                     Intruder{0xfff0000000000000, kNotFiniteDouble},
                                     Intruder{0x7ff8000000000000, kNotFiniteDouble},
                                     Intruder{0xfff0000000000001, kNotFiniteDouble},
                                     Intruder{0x0000000000000001, 1},
                                     Intruder{0x80000000ffffffff, 1},
                                     Intruder{0x8010000000000000, 1},
                                     Intruder{0x0020000000000000, 2}};
  Values values(kExponentBlock + 77, -0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const Intruder& intruder : kIntruders) {
      std::memcpy(&values[i], &intruder.bits, sizeof intruder.bits);
      const Exponents exponents = exponents_of(values);
      ASSERT_EQ(exponents[0], i < kExponentBlock ? intruder.exponent : 0) << i;
      ASSERT_EQ(exponents[1], i < kExponentBlock ? 0 : intruder.exponent) << i;
    }
    values[i] = -0.0;
  }
}

TEST_P(BlockDoubleTest, InstructionSetsAgree) {
  for (const Pattern& pattern : patterns()) {
    for (const unsigned ranks : kRankCounts) {
      const Values values = draw(pattern, 5000, random_);
      Lanes any_lanes(5000);
      for (std::uint64_t& lane : any_lanes) lane = random_();
      ASSERT_TRUE(force_instruction_set(GetParam()));
      const Exponents exponents = exponents_of(values);
      const Lanes lanes = lanes_of(values, exponents, ranks);
      const Values results = values_of(any_lanes, exponents, ranks);
      ASSERT_TRUE(force_instruction_set("sse2"));
      ASSERT_TRUE(same_bits(exponents, exponents_of(values))) << pattern.name;
      ASSERT_TRUE(same_bits(lanes, lanes_of(values, exponents, ranks))) << pattern.name;
      ASSERT_TRUE(same_bits(results, values_of(any_lanes, exponents, ranks))) << pattern.name;
    }
  }
}

TEST_P(BlockDoubleTest, UnalignedAndInPlace) {
  for (const Pattern& pattern : {Pattern{"any", any_finite}, around("2^-1000", -1000)}) {
    for (const std::size_t count : kCounts) {
      const Values values = draw(pattern, count, random_);
      const Exponents exponents = exponents_of(values);
      const Lanes lanes = lanes_of(values, exponents, 1);
      const Values results = values_of(lanes, exponents, 1);
      for (std::size_t offset = 0; offset < 9; ++offset) {
        Misaligned<double> buffer(count, offset);
        buffer.fill(values);
        const std::span<double> inside(buffer.data(), count);
        auto* in_place = reinterpret_cast<std::uint64_t*>(buffer.data());
        ASSERT_EQ(exponents_of(inside), exponents);
        quantise(inside, exponents, 1, in_place);
        ASSERT_TRUE(count == 0 || std::memcmp(in_place, lanes.data(), count * 8) == 0);
        dequantise(in_place, exponents, 1, inside);
        ASSERT_TRUE(buffer.holds(results) && buffer.margin_is_untouched());
      }
    }
  }
}

TEST_P(BlockDoubleTest, CallersFloatingPointModeDoesNotMatter) {
  for (const Pattern& pattern : patterns()) {
    const Values values = draw(pattern, 1100, random_);
    const Exponents exponents = exponents_of(values);
    const Lanes lanes = lanes_of(values, exponents, 4);
    const Values results = values_of(lanes, exponents, 4);
    for (const unsigned mode : kHostileModes) {
      Exponents exponents_there;
      Lanes lanes_there;
      Values results_there;
      const unsigned after = in_mode(mode, [&] {
        exponents_there = exponents_of(values);
        lanes_there = lanes_of(values, exponents, 4);
        results_there = values_of(lanes, exponents, 4);
      });
      ASSERT_EQ(after, mode);
      ASSERT_EQ(exponents_there, exponents) << pattern.name;
      ASSERT_TRUE(same_bits(lanes_there, lanes)) << pattern.name;
      ASSERT_TRUE(same_bits(results_there, results)) << pattern.name;
    }
  }
}

TEST(BlockDoubleStep, IsThatOfTheScale) {
  for (unsigned ranks = 1; ranks <= 64; ++ranks) {
    EXPECT_EQ(block_double_step(0, ranks), 0.0);
    for (Exponent exponent = 1; exponent <= 2046; ++exponent) {
      const long double step = std::ldexp(1.0L, -scale_of(exponent, ranks));
      ASSERT_EQ(block_double_step(exponent, ranks), std::max(step, 0x1p-1074L)) << exponent;
    }
  }
}

TEST(BlockFloatStep, IsTheDistanceOfNeighbouringLanes) {
  EXPECT_EQ(block_float_step(kAllZero), 0.0);
  for (unsigned ranks = 1; ranks <= 64; ++ranks) {
    const std::array<std::uint32_t, 1> steps_above_zero = {ranks * (0x80000000U / ranks) +
                                                           (1U << 12)};
    for (int power = -104; power <= 160; ++power) {
      const auto scale = static_cast<BlockScale>(power);
      std::array<float, 1> value{};
      dequantise(steps_above_zero.data(), std::span(&scale, 1), ranks, value);
      ASSERT_EQ(std::ldexp(block_float_step(scale), 12), value[0]) << power;
    }
  }
}

}  // namespace
}  // namespace erar::numeric
