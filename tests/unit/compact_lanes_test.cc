// Compact lanes against an exact oracle in long double, on every instruction set the CPU has.
#include "core/numeric/compact_lanes.h"

#include "tests/unit/instruction_set_fixture.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>

namespace erar::numeric {
namespace {

using Values = std::vector<float>;
using Lanes = std::vector<std::uint16_t>;
using Exponents = std::vector<Exponent>;

constexpr std::array<unsigned, 10> kRankCounts = {1, 2, 3, 4, 5, 8, 17, 33, 63, 64};

int bias_of(unsigned ranks) {
  int guard = 0;
  while ((1U << guard) < ranks) ++guard;
  return 1 << (15 - guard);
}

// The largest s that keeps all of the block's magnitudes, which are below 2^(exponent - 126), below
// the bias.
int scale_of(Exponent exponent, unsigned ranks) {
  return std::ilogb(bias_of(ranks)) - (exponent - 126);
}

int oracle_lane(float value, Exponent exponent, unsigned ranks) {
  const int bias = bias_of(ranks);
  if (exponent == 0) return bias;
  const long double scaled = std::ldexp(static_cast<long double>(value), scale_of(exponent, ranks));
  return std::clamp(static_cast<int>(std::lrint(scaled)), 1 - bias, bias - 1) + bias;
}

float oracle_value(int lane, Exponent exponent, unsigned contributors, unsigned ranks) {
  const int sum = lane - static_cast<int>(contributors) * bias_of(ranks);
  if (sum == 0 || exponent == 0) return 0.0F;
  return static_cast<float>(std::ldexp(static_cast<long double>(sum), -scale_of(exponent, ranks)));
}

float from_bits(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

float any_finite(Random& random) {
  const std::uint64_t bits = random();
  return from_bits((bits & 0x807fffff) | ((bits >> 32) % 255) << 23);
}

struct Pattern {
  const char* name;
  std::function<float(Random&)> draw;
};

// Random mantissas on the few exponents around 2^power.
Pattern around(const char* name, int power) {
  return {name, [power](Random& random) {
            const std::uint64_t bits = random();
            return std::ldexp(from_bits((bits & 0x807fffff) | 0x3f800000),
                              power + static_cast<int>((bits >> 32) % 8));
          }};
}

std::vector<Pattern> patterns() {
  return {
      {"gradients",
       [](Random& random) { return std::normal_distribution<float>(0.0F, 1e-3F)(random); }},
      {"zeros", [](Random& random) { return (random() & 1) != 0 ? 0.0F : -0.0F; }},
      {"any finite", any_finite},
      {"halves of steps",
       [](Random& random) { return static_cast<float>(random() % 131071) / 2.0F - 32767.5F; }},
      {"just below powers of two",
       [](Random& random) {
         return std::ldexp(1.0F, static_cast<int>(random() % 20)) - from_bits(random() % 100 << 23);
       }},
      {"denormals", [](Random& random) { return from_bits(random() & 0x807fffff); }},
      {"few denormal bits", [](Random& random) { return from_bits(random() & 0x80000007); }},
      {"+-FLT_MAX", [](Random& random) { return (random() & 1) != 0 ? FLT_MAX : -FLT_MAX; }},
      // On both sides of where two steps of scaling begin: exponents 9 to 16.
      around("2^-118", -118),
      around("2^-114", -114),
      around("2^-126", -126),
  };
}

Values draw(const Pattern& pattern, std::size_t count, Random& random) {
  Values values(count);
  for (float& value : values) value = pattern.draw(random);
  return values;
}

Exponents agreed_exponents(const std::vector<Values>& ranks) {
  Exponents agreed(exponent_count(ranks.front().size()));
  for (const Values& values : ranks) {
    Exponents own(agreed.size());
    block_exponents(values, own);
    for (std::size_t i = 0; i < own.size(); ++i) agreed[i] = std::max(agreed[i], own[i]);
  }
  return agreed;
}

Lanes lanes_of(std::span<const float> values, const Exponents& exponents, unsigned ranks) {
  Lanes lanes(values.size());
  quantise_compact(values, exponents, ranks, lanes.data());
  return lanes;
}

Values values_of(const Lanes& lanes, const Exponents& exponents, unsigned contributors,
                 unsigned ranks) {
  Values values(lanes.size());
  dequantise_compact(lanes.data(), exponents, contributors, ranks, values);
  return values;
}

// As the kernel adds: four lanes in a 64-bit word.
void add_words(Lanes& sum, Lanes own) {
  const std::size_t count = sum.size();
  sum.resize((count + 3) / 4 * 4);
  own.resize(sum.size());
  for (std::size_t i = 0; i < sum.size(); i += 4) {
    std::uint64_t word = 0;
    std::uint64_t own_word = 0;
    std::memcpy(&word, &sum[i], sizeof word);
    std::memcpy(&own_word, &own[i], sizeof own_word);
    word += own_word;
    std::memcpy(&sum[i], &word, sizeof word);
  }
  sum.resize(count);
}

class CompactLanesTest : public InstructionSetTest {};
INSTANTIATE_TEST_SUITE_P(InstructionSets, CompactLanesTest, instruction_sets(),
                         instruction_set_name);

// What one rank's lane stands for is near its value: by half a step, or a step where clamped.
void check_error(float value, std::uint16_t lane, float decoded, Exponent exponent,
                 unsigned ranks) {
  const int bias = bias_of(ranks);
  ASSERT_EQ(std::bit_cast<std::uint32_t>(decoded),
            std::bit_cast<std::uint32_t>(oracle_value(lane, exponent, 1, ranks)))
      << value;
  const auto step = static_cast<long double>(compact_step(exponent, ranks));
  const long double error = std::fabs(static_cast<long double>(value) - decoded);
  const bool clamped = lane == 1 || lane == 2 * bias - 1;
  ASSERT_TRUE(error <= step / 2 || (clamped && error < step)) << value << " as " << decoded;
}

void check_reduction(const std::vector<Values>& inputs) {
  const auto ranks = static_cast<unsigned>(inputs.size());
  const std::size_t count = inputs.front().size();
  const Exponents exponents = agreed_exponents(inputs);
  std::vector<int> wide_sum(count);
  Lanes sum(count);
  for (const Values& values : inputs) {
    const Lanes lanes = lanes_of(values, exponents, ranks);
    const Values decoded = values_of(lanes, exponents, 1, ranks);
    for (std::size_t i = 0; i < count; ++i) {
      const Exponent exponent = exponents[i / kExponentBlock];
      ASSERT_EQ(lanes[i], oracle_lane(values[i], exponent, ranks))
          << "element " << i << " = " << values[i];
      ASSERT_NO_FATAL_FAILURE(check_error(values[i], lanes[i], decoded[i], exponent, ranks));
      wide_sum[i] += lanes[i];
    }
    add_words(sum, lanes);
  }
  const Values results = values_of(sum, exponents, ranks, ranks);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(wide_sum[i], sum[i]) << "lane " << i << " carried";
    const float expected = oracle_value(sum[i], exponents[i / kExponentBlock], ranks, ranks);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(results[i]), std::bit_cast<std::uint32_t>(expected))
        << "element " << i << ": " << results[i] << " instead of " << expected;
  }
}

TEST_P(CompactLanesTest, MatchesOracleForEveryCount) {
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

TEST_P(CompactLanesTest, MatchesOracleForEveryRankCount) {
  for (const Pattern& pattern : patterns()) {
    for (unsigned ranks = 1; ranks <= 64; ++ranks) {
      SCOPED_TRACE(testing::Message() << pattern.name << " x " << ranks);
      std::vector<Values> inputs(ranks);
      for (Values& values : inputs) values = draw(pattern, 67, random_);
      ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
    }
  }
}

TEST_P(CompactLanesTest, MatchesOracleForUnlikeRanks) {
  const std::vector<Pattern> kinds = patterns();
  for (int round = 0; round < 50; ++round) {
    std::vector<Values> inputs(1 + random_() % 8);
    for (Values& values : inputs) values = draw(kinds[random_() % kinds.size()], 1040, random_);
    ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
  }
}

// The largest and smallest values of every exponent; the largest would round up to the bias.
TEST_P(CompactLanesTest, EveryExponentIsClampedAndNeverCarries) {
  for (unsigned ranks = 1; ranks <= 64; ++ranks) {
    const int bias = bias_of(ranks);
    for (std::uint32_t exponent = 1; exponent <= 254; ++exponent) {
      const float largest = from_bits(exponent << 23 | 0x7fffff);
      const Values values = {largest,
                             -largest,
                             largest,
                             largest,
                             from_bits(1),
                             from_bits(0x80000001),
                             from_bits(0x7fffff),
                             FLT_MIN,
                             from_bits(exponent << 23)};
      const Exponents exponents = {static_cast<Exponent>(exponent)};
      const Lanes lanes = lanes_of(values, exponents, ranks);
      ASSERT_EQ(lanes[0], 2 * bias - 1);
      ASSERT_EQ(lanes[1], 1);
      ASSERT_NO_FATAL_FAILURE(check_reduction(std::vector<Values>(ranks, values)));
    }
  }
}

// The whole range of sums, decoded with every exponent, denormal results among them.
TEST_P(CompactLanesTest, EveryLaneDecodesExactly) {
  Lanes lanes;
  for (unsigned lane = 0; lane < 65536; lane += 1 + static_cast<unsigned>(random_() % 300)) {
    lanes.push_back(static_cast<std::uint16_t>(lane));
  }
  for (const unsigned ranks : kRankCounts) {
    for (const unsigned contributors : {1U, (ranks + 1) / 2, ranks}) {
      for (std::uint32_t exponent = 0; exponent <= 254; ++exponent) {
        const Exponents exponents = {static_cast<Exponent>(exponent)};
        const Values values = values_of(lanes, exponents, contributors, ranks);
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          ASSERT_EQ(values[i], oracle_value(lanes[i], exponents[0], contributors, ranks))
              << exponent << ' ' << lanes[i];
        }
      }
    }
  }
}

TEST_P(CompactLanesTest, UnalignedAndNothingBeyond) {
  for (const Pattern& pattern : {Pattern{"any", any_finite}, around("2^-126", -126)}) {
    for (const std::size_t count : kCounts) {
      const Values values = draw(pattern, count, random_);
      const Exponents exponents = agreed_exponents({values});
      const Lanes lanes = lanes_of(values, exponents, 3);
      const Values decoded = values_of(lanes, exponents, 1, 3);
      for (std::size_t offset = 0; offset < 9; ++offset) {
        Misaligned<float> wide(count, offset);
        Misaligned<std::uint16_t> narrow(count, offset);
        wide.fill(values);
        quantise_compact({wide.data(), count}, exponents, 3, narrow.data());
        ASSERT_TRUE(narrow.holds(lanes) && narrow.margin_is_untouched());
        dequantise_compact(narrow.data(), exponents, 1, 3, {wide.data(), count});
        ASSERT_TRUE(wide.holds(decoded) && wide.margin_is_untouched());
      }
    }
  }
}

TEST_P(CompactLanesTest, CallersFloatingPointModeDoesNotMatter) {
  for (const Pattern& pattern : patterns()) {
    const Values values = draw(pattern, 2100, random_);
    const Exponents exponents = agreed_exponents({values});
    const Lanes lanes = lanes_of(values, exponents, 4);
    const Values results = values_of(lanes, exponents, 1, 4);
    for (const unsigned mode : kHostileModes) {
      Lanes lanes_there;
      Values results_there;
      const unsigned after = in_mode(mode, [&] {
        lanes_there = lanes_of(values, exponents, 4);
        results_there = values_of(lanes, exponents, 1, 4);
      });
      ASSERT_EQ(after, mode);
      ASSERT_TRUE(same_bits(lanes_there, lanes)) << pattern.name;
      ASSERT_TRUE(same_bits(results_there, results)) << pattern.name;
    }
  }
}

TEST(CompactStep, IsThatOfTheScale) {
  for (unsigned ranks = 1; ranks <= 64; ++ranks) {
    EXPECT_EQ(compact_step(0, ranks), 0.0);
    for (Exponent exponent = 1; exponent <= 254; ++exponent) {
      ASSERT_EQ(compact_step(exponent, ranks), std::ldexp(1.0, -scale_of(exponent, ranks)));
    }
  }
}

}  // namespace
}  // namespace erar::numeric
