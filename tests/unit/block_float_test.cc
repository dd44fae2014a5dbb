// Block floating point against an exact oracle, on every instruction set the CPU has.
//
// The oracle scales in long double: its 64-bit mantissa and 15-bit exponent hold every value, lane
// and sum here exactly, so each lane and each result is compared bit for bit. ERAR_SEED replays a
// run.
#include "core/numeric/block_float.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include "tests/unit/float_patterns.h"
#include "tests/unit/instruction_set_fixture.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace erar::numeric {
namespace {

constexpr std::array<unsigned, 10> kRankCounts = {1, 2, 3, 4, 5, 8, 17, 33, 63, 64};

using Values = std::vector<float>;
using Lanes = std::vector<std::uint32_t>;
using Maxima = std::vector<MagnitudeSum>;
using Scales = std::vector<BlockScale>;
using Exponents = std::vector<Exponent>;

std::int64_t bias_of(unsigned ranks) { return (std::int64_t{1} << 31) / ranks; }

// From the definition: what a sum may be, in steps.
long double limit_of(unsigned ranks) {
  return static_cast<long double>(ranks) * bias_of(ranks) - ranks / 2.0L - 2;
}

// Written from the definition, not from bits.
Exponent oracle_exponent(std::span<const float> block) {
  float largest = 0;
  for (const float value : block) {
    if (!std::isfinite(value)) return kNotFinite;
    largest = std::max(largest, std::fabs(value));
  }
  if (largest == 0) return 0;
  return static_cast<Exponent>(std::max(std::ilogb(largest) + 127, 1));
}

// The lane as a number: negative where it borrows.
std::int64_t oracle_lane(float value, BlockScale scale, unsigned ranks) {
  if (scale == kAllZero) return bias_of(ranks);
  return std::llrint(std::ldexp(static_cast<long double>(value), scale)) + bias_of(ranks);
}

float oracle_value(std::int64_t sum, BlockScale scale, unsigned ranks) {
  const std::int64_t signed_sum = sum - static_cast<std::int64_t>(ranks) * bias_of(ranks);
  if (signed_sum == 0 || scale == kAllZero) return 0.0F;
  return static_cast<float>(std::ldexp(static_cast<long double>(signed_sum), -scale));
}

Values draw(const Pattern& pattern, std::size_t count, Random& random) {
  Values values(count);
  for (float& value : values) value = pattern.draw(random);
  return values;
}

Exponents exponents_of(std::span<const float> values) {
  Exponents exponents(exponent_count(values.size()));
  block_exponents(values, exponents);
  return exponents;
}

Maxima maxima_of(std::span<const float> values) {
  Maxima maxima(exponent_count(values.size()));
  EXPECT_TRUE(block_maxima(values, maxima));
  return maxima;
}

Scales scales_of(const Maxima& sums, unsigned ranks) {
  Scales scales;
  for (const MagnitudeSum& sum : sums) scales.push_back(scale_of(sum, ranks));
  return scales;
}

// What the ring agrees on: words are added.
Maxima summed_maxima(const std::vector<Values>& ranks) {
  Maxima sums(exponent_count(ranks.front().size()));
  for (const Values& values : ranks) {
    const Maxima own = maxima_of(values);
    for (std::size_t i = 0; i < own.size(); ++i)
      for (std::size_t word = 0; word < 8; ++word) sums[i].words[word] += own[i].words[word];
  }
  return sums;
}

// As if all ranks had these values.
Scales scales_of(std::span<const float> values, unsigned ranks) {
  Maxima sums = maxima_of(values);
  for (MagnitudeSum& sum : sums)
    for (std::uint64_t& word : sum.words) word *= ranks;
  return scales_of(sums, ranks);
}

Lanes lanes_of(std::span<const float> values, const Scales& scales, unsigned ranks) {
  Lanes lanes(values.size());
  quantise(values, scales, ranks, lanes.data());
  return lanes;
}

Values values_of(const Lanes& lanes, const Scales& scales, unsigned ranks,
                 Destination destination = Destination::kCache) {
  Values values(lanes.size());
  dequantise(lanes.data(), scales, ranks, values, destination);
  return values;
}

// As the kernel adds: two lanes in a 64-bit word.
void add_words(Lanes& sum, const Lanes& own) {
  std::size_t i = 0;
  for (; i + 2 <= sum.size(); i += 2) {
    std::uint64_t word = 0;
    std::uint64_t own_word = 0;
    std::memcpy(&word, &sum[i], sizeof word);
    std::memcpy(&own_word, &own[i], sizeof own_word);
    word += own_word;
    std::memcpy(&sum[i], &word, sizeof word);
  }
  for (; i < sum.size(); ++i) sum[i] += own[i];
}

class BlockFloatTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(InstructionSets, BlockFloatTest, instruction_sets(), instruction_set_name);

// The scale against the definition, from the exact sum of the ranks' largest magnitudes.
void check_scale(BlockScale scale, long double total, unsigned ranks) {
  if (total == 0) {
    ASSERT_EQ(scale, kAllZero);
    return;
  }
  ASSERT_LE(std::ldexp(total, scale), limit_of(ranks));
  // The next larger one would be too large, but for what scale_of() adds against its rounding.
  ASSERT_GT(std::ldexp(total, scale + 1) * (1 + 0x1p-47L), limit_of(ranks));
  ASSERT_LE(std::ldexp(1.0L, -scale), total * 0x1p-30L * (1 + 0x1p-24L));
}

// One reduction of `ranks` buffers, every step compared with the oracle.
void check_reduction(const std::vector<Values>& inputs) {
  const auto ranks = static_cast<unsigned>(inputs.size());
  const std::size_t count = inputs.front().size();
  const Scales scales = scales_of(summed_maxima(inputs), ranks);
  for (std::size_t block = 0; block < scales.size(); ++block) {
    long double total = 0;
    for (const Values& values : inputs) {
      float largest = 0;
      for (std::size_t i = block * kExponentBlock;
           i < std::min(count, (block + 1) * kExponentBlock); ++i)
        largest = std::max(largest, std::fabs(values[i]));
      total += static_cast<long double>(largest);
    }
    ASSERT_NO_FATAL_FAILURE(check_scale(scales[block], total, ranks));
  }
  std::vector<std::int64_t> wide_sum(count);
  std::vector<long double> exact_sum(count);
  Lanes sum(count);
  for (const Values& values : inputs) {
    const Lanes lanes = lanes_of(values, scales, ranks);
    std::int64_t borrow = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t lane = oracle_lane(values[i], scales[i / kExponentBlock], ranks);
      ASSERT_EQ(lanes[i], static_cast<std::uint32_t>(lane - borrow))
          << "element " << i << " = " << values[i];
      borrow = i % 2 == 0 && lane < 0 ? 1 : 0;
      wide_sum[i] += lane;
      exact_sum[i] += static_cast<long double>(values[i]);
    }
    add_words(sum, lanes);
  }
  const Values results = values_of(sum, scales, ranks);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(wide_sum[i], std::int64_t{sum[i]}) << "lane " << i << " left its place";
    const BlockScale scale = scales[i / kExponentBlock];
    const float expected = oracle_value(wide_sum[i], scale, ranks);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(results[i]), std::bit_cast<std::uint32_t>(expected))
        << "element " << i << ": " << results[i] << " instead of " << expected;
    if (!std::isfinite(expected)) {
      ASSERT_GT(std::fabs(exact_sum[i]), static_cast<long double>(FLT_MAX) * 0.9999L);
      continue;
    }
    const long double step = block_float_step(scale);
    // Half a unit in the last place of the result; 2^-60 for the oracle's own summation.
    const long double rounding =
        std::max(std::ldexp(std::fabs(exact_sum[i]), -24) * 1.0001L, std::ldexp(1.0L, -150));
    const long double bound = ranks / 2.0L * step + rounding + std::ldexp(step, -20);
    ASSERT_TRUE(std::fabs(results[i] - exact_sum[i]) <= bound)
        << "element " << i << ": " << results[i] << " for " << exact_sum[i];
  }
}

TEST_P(BlockFloatTest, MatchesOracleForEveryCount) {
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

TEST_P(BlockFloatTest, MatchesOracleForManyRanks) {
  for (const Pattern& pattern : patterns()) {
    for (const unsigned ranks : kRankCounts) {
      SCOPED_TRACE(testing::Message() << pattern.name << " x " << ranks);
      std::vector<Values> inputs(ranks);
      for (Values& values : inputs) values = draw(pattern, 67, random_);
      ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
    }
  }
}

// Ranks of one ring whose magnitudes differ: most of them must quantise far below their own scale.
TEST_P(BlockFloatTest, MatchesOracleForUnlikeRanks) {
  const std::vector<Pattern> kinds = patterns();
  for (int round = 0; round < 50; ++round) {
    std::vector<Values> inputs(1 + random_() % 8);
    for (Values& values : inputs) values = draw(kinds[random_() % kinds.size()], 1040, random_);
    ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
  }
}

// All ranks at their largest, with equal and with opposite signs, and one rank far above the
// others.
TEST_P(BlockFloatTest, WorstCasesStayInTheirLanes) {
  for (unsigned ranks = 1; ranks <= 64; ++ranks) {
    for (std::uint32_t exponent = 1; exponent <= 254; exponent += 11) {
      const float largest = from_bits(exponent << 23 | 0x7fffff);
      std::vector<Values> inputs(ranks, {largest, -largest, largest, largest, -largest});
      ASSERT_NO_FATAL_FAILURE(check_reduction(inputs)) << ranks;
      for (unsigned rank = 1; rank < ranks; ++rank)
        inputs[rank] = {-largest / 1024, largest / 1024, -largest / 4096, 0, 0};
      ASSERT_NO_FATAL_FAILURE(check_reduction(inputs)) << ranks;
      for (Values& values : inputs) values = {0, -largest, -largest, 0, -largest};
      ASSERT_NO_FATAL_FAILURE(check_reduction(inputs)) << ranks;
    }
  }
}

// Where flushing a denormal to zero, or rounding twice, would show: each scale with the smallest
// values that still count, and with sums about to lose bits.
TEST_P(BlockFloatTest, SmallestValuesUnderEveryScale) {
  const Values values = {from_bits(1),        from_bits(0x80000001), from_bits(0x400000),
                         from_bits(0x400001), from_bits(0x7fffff),   from_bits(0x800000),
                         from_bits(0x800001)};
  const std::array<std::int32_t, 10> sums = {
      0, 1, -1, 3, -64, 65, (1 << 24) + 1, -(1 << 25) - 3, 0x1fffffff, -191};
  for (const unsigned ranks : kRankCounts) {
    const auto bias = static_cast<std::uint32_t>(ranks * bias_of(ranks));
    for (int scale = -104; scale <= 179; ++scale) {
      const Scales scales = {static_cast<BlockScale>(scale)};
      // No value is above what the scale was made of.
      if (scale <= 150) {
        const Lanes lanes = lanes_of(values, scales, ranks);
        std::int64_t borrow = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::int64_t lane = oracle_lane(values[i], scales[0], ranks);
          ASSERT_EQ(lanes[i], static_cast<std::uint32_t>(lane - borrow)) << scale << ' ' << i;
          borrow = i % 2 == 0 && lane < 0 ? 1 : 0;
        }
      }
      Lanes summed;
      for (const std::int32_t sum : sums) summed.push_back(bias + static_cast<std::uint32_t>(sum));
      const Values results = values_of(summed, scales, ranks);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        ASSERT_EQ(results[i], oracle_value(std::int64_t{bias} + sums[i], scales[0], ranks))
            << scale << ' ' << i;
      }
    }
  }
}

TEST_P(BlockFloatTest, OverflowIsInfinity) {
  const Values values = {FLT_MAX, -FLT_MAX, 1.0F};
  const Scales scales = scales_of(values, 2);
  Lanes sum = lanes_of(values, scales, 2);
  add_words(sum, lanes_of(values, scales, 2));
  const Values results = values_of(sum, scales, 2);
  EXPECT_EQ(results[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ(results[1], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(results[2], 0.0F);
}

// Half a step of each of 64 ranks, 32 steps of an ulp: 14 ulp below FLT_MAX may be too much
// already.
TEST_P(BlockFloatTest, SumsWithinTheQuantisationErrorOfFltMaxMayBeInfinity) {
  const float ulp = std::ldexp(1.0F, 104);
  std::vector<Values> inputs;
  long double sum = 0;
  for (unsigned rank = 0; rank < 64; ++rank) {
    const float half_step = std::ldexp(1.0F, 102);
    const float above = std::nextafter(half_step, FLT_MAX);
    inputs.push_back({FLT_MAX, rank == 0 ? FLT_MAX - 14 * ulp : rank < 32 ? above : -half_step});
    sum += static_cast<long double>(inputs.back()[1]);
  }
  ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
  const Scales scales = scales_of(summed_maxima(inputs), 64);
  Lanes lanes(2);
  for (const Values& values : inputs) add_words(lanes, lanes_of(values, scales, 64));
  EXPECT_LT(sum, static_cast<long double>(FLT_MAX));
  EXPECT_GT(sum, FLT_MAX - 32.0L * block_float_step(scales[0]));
  EXPECT_EQ(values_of(lanes, scales, 64)[1], std::numeric_limits<float>::infinity());
}

// What fits exactly is refused for the rounding of the sum of maxima, and the step that one more
// takes is 2: more than A * 2^-30.
TEST_P(BlockFloatTest, ScaleAtItsLimit) {
  for (const auto& [other, scale] : {std::pair{124.0F, 0}, {125.0F, -1}, {126.0F, -1}}) {
    const std::vector<Values> inputs = {{2147483520.0F}, {other}};
    EXPECT_EQ(scales_of(summed_maxima(inputs), 2)[0], scale) << other;
    ASSERT_NO_FATAL_FAILURE(check_reduction(inputs));
  }
  EXPECT_GT(2.0L, (2147483520.0L + 126) * 0x1p-30L);
}

TEST_P(BlockFloatTest, ASumOfMinusZerosIsPlusZero) {
  const std::vector<Values> inputs = {{-0.0F, 1.0F}, {-0.0F, 1.0F}};
  const Scales scales = scales_of(summed_maxima(inputs), 2);
  Lanes lanes(2);
  for (const Values& values : inputs) add_words(lanes, lanes_of(values, scales, 2));
  EXPECT_FALSE(std::signbit(values_of(lanes, scales, 2)[0]));
}

TEST_P(BlockFloatTest, AnyOrderOfRanksGivesTheSameBits) {
  constexpr unsigned kRanks = 7;
  std::vector<Values> inputs(kRanks);
  for (Values& values : inputs) values = draw({"any", any_finite}, 2500, random_);
  const Scales scales = scales_of(summed_maxima(inputs), kRanks);
  std::array<unsigned, kRanks> order{};
  std::iota(order.begin(), order.end(), 0U);
  Values first;
  for (int round = 0; round < 20; ++round) {
    Lanes sum(2500);
    for (const unsigned rank : order) add_words(sum, lanes_of(inputs[rank], scales, kRanks));
    const Values results = values_of(sum, scales, kRanks);
    if (round == 0) first = results;
    ASSERT_TRUE(same_bits(first, results));
    std::shuffle(order.begin(), order.end(), random_);
  }
}

TEST_P(BlockFloatTest, ExponentsMatchOracle) {
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

TEST_P(BlockFloatTest, FindsNotFiniteAtEveryPosition) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::array<float, 4> intruders = {kInfinity, -kInfinity, from_bits(0x7fc00000),
                                          from_bits(0xff800001)};
  Values values(kExponentBlock + 77, FLT_MAX);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const float intruder : intruders) {
      // Copied as bits, since a signalling NaN does not survive every assignment.
      std::memcpy(&values[i], &intruder, sizeof intruder);
      const Exponents exponents = exponents_of(values);
      ASSERT_EQ(exponents[0], i < kExponentBlock ? kNotFinite : 254) << i;
      ASSERT_EQ(exponents[1], i < kExponentBlock ? 254 : kNotFinite) << i;
      Maxima maxima(2);
      ASSERT_FALSE(block_maxima(values, maxima)) << i;
      ASSERT_EQ(maxima[0] == MagnitudeSum{}, i < kExponentBlock) << i;
      ASSERT_EQ(maxima[1] == MagnitudeSum{}, i >= kExponentBlock) << i;
    }
    values[i] = FLT_MAX;
  }
}

TEST_P(BlockFloatTest, InstructionSetsAgree) {
  for (const Pattern& pattern : patterns()) {
    for (const unsigned ranks : kRankCounts) {
      const Values values = draw(pattern, 5000, random_);
      Lanes any_lanes(5000);
      for (std::uint32_t& lane : any_lanes) lane = static_cast<std::uint32_t>(random_());
      ASSERT_TRUE(force_instruction_set(GetParam()));
      const Scales scales = scales_of(values, ranks);
      const Lanes lanes = lanes_of(values, scales, ranks);
      const Values results = values_of(any_lanes, scales, ranks);
      const Values to_memory = values_of(any_lanes, scales, ranks, Destination::kMemory);
      ASSERT_TRUE(force_instruction_set("sse2"));
      ASSERT_TRUE(same_bits(scales, scales_of(values, ranks))) << pattern.name;
      ASSERT_TRUE(same_bits(lanes, lanes_of(values, scales, ranks))) << pattern.name;
      ASSERT_TRUE(same_bits(results, values_of(any_lanes, scales, ranks))) << pattern.name;
      ASSERT_TRUE(same_bits(results, to_memory)) << pattern.name;
    }
  }
}

// Any alignment, in place or not, to cache or memory, and nothing beyond the buffer is touched.
TEST_P(BlockFloatTest, UnalignedAndInPlace) {
  constexpr std::size_t kMargin = 20;
  for (const std::size_t count : kCounts) {
    const Values values = draw({"any", any_finite}, count, random_);
    const Scales scales = scales_of(values, 1);
    const Lanes lanes = lanes_of(values, scales, 1);
    const Values results = values_of(lanes, scales, 1);
    for (std::size_t offset = 0; offset < 17; ++offset) {
      for (const Destination destination : {Destination::kCache, Destination::kMemory}) {
        Values buffer(count + offset + kMargin, 42.0F);
        std::copy(values.begin(), values.end(),
                  buffer.begin() + static_cast<std::ptrdiff_t>(offset));
        const std::span<float> inside(buffer.data() + offset, count);
        auto* in_place = reinterpret_cast<std::uint32_t*>(inside.data());
        ASSERT_EQ(scales_of(inside, 1), scales);
        quantise(inside, scales, 1, in_place);
        ASSERT_TRUE(count == 0 || std::memcmp(in_place, lanes.data(), count * 4) == 0);
        dequantise(in_place, scales, 1, inside, destination);
        ASSERT_TRUE(count == 0 || std::memcmp(inside.data(), results.data(), count * 4) == 0);
        std::fill(inside.begin(), inside.end(), 0.0F);
        dequantise(lanes.data(), scales, 1, inside, destination);
        ASSERT_TRUE(count == 0 || std::memcmp(inside.data(), results.data(), count * 4) == 0);
        const auto outside = [](float value) { return value == 42.0F; };
        ASSERT_TRUE(std::all_of(buffer.data(), inside.data(), outside));
        ASSERT_TRUE(std::all_of(inside.data() + count, buffer.data() + buffer.size(), outside));
      }
    }
  }
}

// Flush to zero, denormals are zero, rounding towards +infinity: a caller may have set any of them.
TEST_P(BlockFloatTest, CallersFloatingPointModeDoesNotMatter) {
  for (const Pattern& pattern : patterns()) {
    const Values values = draw(pattern, 1100, random_);
    const Scales scales = scales_of(values, 4);
    const Lanes lanes = lanes_of(values, scales, 4);
    const Values results = values_of(lanes, scales, 4);
    const unsigned before = _mm_getcsr();
    constexpr unsigned kFlushingUpwards = 0xdfc0;
    _mm_setcsr(kFlushingUpwards);
    const Scales scales_there = scales_of(values, 4);
    const Lanes lanes_there = lanes_of(values, scales, 4);
    const Values results_there = values_of(lanes, scales, 4);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    ASSERT_EQ(after, kFlushingUpwards);
    ASSERT_EQ(scales_there, scales) << pattern.name;
    ASSERT_TRUE(same_bits(lanes_there, lanes)) << pattern.name;
    ASSERT_TRUE(same_bits(results_there, results)) << pattern.name;
  }
}

TEST(BlockFloatInstructionSet, RefusesAnUnknownOne) {
  const std::string before = instruction_set();
  EXPECT_FALSE(force_instruction_set("mmx"));
  EXPECT_EQ(before, instruction_set());
}

}  // namespace
}  // namespace erar::numeric
