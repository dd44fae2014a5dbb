// `erar numerics`: the models do what they say, the errors are counted right, eRAR's are in bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/baseline/ring_plan.h"
#include "experiments/numerics/comparison.h"
#include "experiments/numerics/report.h"

namespace erar::numerics {
namespace {

constexpr std::size_t kCount = 65536;

const Row& row_of(const std::vector<Row>& rows, Method method) {
  return rows[static_cast<std::size_t>(method)];
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<Row> compared(Gradients input, unsigned ranks, std::uint64_t seed,
                          std::size_t count = kCount) {
  auto rows = compare(input, ranks, count, seed);
  EXPECT_TRUE(rows) << rows.error().message();
  return rows ? *rows : std::vector<Row>(kMethods.size());
}

// Three values whose float32 sum is another in each of the three orders that a ring of three has.
TEST(FloatRing, EachChunkStartsAtItsRank) {
  constexpr std::size_t kEach = 16;
  Inputs inputs(3);
  inputs[0].assign(3 * kEach, 1.0F);
  inputs[1].assign(3 * kEach, -0x1.000002p0F);
  inputs[2].assign(3 * kEach, 0x1p-24F);
  const std::vector<float> sum = float_ring_sum(inputs);
  for (std::size_t i = 0; i < kEach; i++) {
    EXPECT_EQ(sum[i], -0x1p-24F);              // (first + second) + third, exact
    EXPECT_EQ(sum[kEach + i], 0.0F);           // second + third is a tie, rounded to -1
    EXPECT_EQ(sum[2 * kEach + i], -0x1p-23F);  // third + first is a tie, rounded to 1
  }
}

// The last chunk that a rank of the TCP ring adds to is the one after its own.
TEST(FloatRing, CutsTheBufferAsTheTcpRingDoes) {
  for (const std::size_t count : {1U, 16U, 100U, 1000U, 65536U}) {
    for (const unsigned ranks : {2U, 3U, 7U, 64U}) {
      const std::size_t each = float_ring_chunk(count, ranks);
      std::vector<float> buffer(count);
      const auto* bytes = reinterpret_cast<const std::byte*>(buffer.data());
      for (unsigned rank = 0; rank < ranks; rank++) {
        RingPlan plan;
        plan_allreduce(plan, rank, ranks, bytes, reinterpret_cast<std::byte*>(buffer.data()), count,
                       sizeof(float));
        const std::size_t first = std::min(count, each * ((rank + 1) % ranks));
        const std::size_t end = std::min(count, first + each);
        const bool adds = !plan.reduce.empty() && plan.reduce.back().last;
        ASSERT_EQ(adds, first < end) << count << " elements, rank " << rank << " of " << ranks;
        if (!adds) continue;
        ASSERT_EQ(plan.reduce.back().own, bytes + first * sizeof(float));
        ASSERT_EQ(plan.reduce.back().bytes, (end - first) * sizeof(float));
      }
    }
  }
}

TEST(ScaledInt, IsRightInItsRangeAndWrongBeyond) {
  const Inputs inputs = {{0.5F, 10.0F, 11.0F, 30.0F, 4e-9F, -11.0F, -21.25F},
                         {0.25F, 10.0F, 11.0F, 1.0F, 4e-9F, -11.0F, 1.0F}};
  const std::vector<float> sum = scaled_int_sum(inputs);
  EXPECT_EQ(sum[0], 0.75F);
  EXPECT_EQ(sum[1], 20.0F);
  EXPECT_FLOAT_EQ(sum[2], 22.0F - 42.949673F);  // above 21.47 it wraps around
  EXPECT_FLOAT_EQ(sum[3], -21.474836F + 1.0F);  // does not fit to begin with
  EXPECT_EQ(sum[4], 0.0F);                      // below 1e-8 it vanishes
  EXPECT_FLOAT_EQ(sum[5], -22.0F + 42.949673F);
  EXPECT_EQ(sum[6], -20.25F);
}

TEST(Errors, AreCountedElementByElement) {
  const Inputs inputs = {{1.0F, 4.0F, 0.0F, 0.0F}, {1.0F, -3.0F, 0.0F, 0.0F}};
  const Truth truth(inputs);
  EXPECT_EQ(truth.largest_sum(), 2.0);
  const Errors errors = errors_of(truth, {2.5F, -0.5F, 0.0F, 0.25F});
  EXPECT_EQ(errors.largest, 1.5);
  EXPECT_EQ(errors.largest_to_block, 1.5 / 4);
  EXPECT_EQ(errors.largest_relative, 1.5);
  EXPECT_EQ(errors.no_digit, 2U);  // -0.5 instead of 1, and 0.25 instead of 0
  EXPECT_DOUBLE_EQ(errors.rms * errors.rms, (0.25 + 2.25 + 0.0625) / 4);
}

TEST(Errors, BoundsAreThoseOfTheSteps) {
  // The largest are 4 and 3: 7 steps of 2^-28 fit. Compressed: exponent 2, 1 guard bit, 2^(2 - 13).
  const Inputs inputs = {{1.0F, 4.0F}, {1.0F, -3.0F}};
  const Truth truth(inputs);
  EXPECT_EQ(truth.bound(0, false), 0x1p-28L + 0x1p-23L);
  EXPECT_EQ(truth.bound(0, true), 0x1p-11L);
  const Inputs clamped = {{7.9999F, 1.0F}, {7.9999F, 1.0F}};
  EXPECT_EQ(Truth(clamped).bound(0, true), 2 * 0x1p-11L);
  EXPECT_EQ(Truth(clamped).bound(1, true), 0x1p-11L);
}

TEST(Comparison, DrawsTheSameValuesForARankHoweverManyThereAre) {
  for (const Gradients input : kAllGradients) {
    const Inputs few = draw_gradients(input, 2, 3000, 5);
    const Inputs many = draw_gradients(input, 3, 3000, 5);
    EXPECT_EQ(few[1], many[1]);
    EXPECT_NE(many[1], many[2]);
    EXPECT_NE(draw_gradients(input, 2, 3000, 6)[1], few[1]);
  }
}

// Of eRAR alone: bits and bounds, whatever the float32 ring does.
TEST(Comparison, ErarKeepsItsBoundsAndItsBitsOnEveryInput) {
  for (const Gradients input : kAllGradients) {
    for (unsigned ranks = 2; ranks <= 16; ranks++) {
      const auto rows = compared(input, ranks, ranks, 5000);
      for (const Method method : {Method::kErar, Method::kErarCompressed}) {
        const Row& row = row_of(rows, method);
        EXPECT_TRUE(row.ranks_agree) << name_of(input) << ", " << ranks << " ranks";
        EXPECT_LE(row.share_of_bound.value_or(2), 1.0)
            << name_of(input) << ", " << ranks << " ranks, " << name_of(method);
      }
    }
  }
}

TEST(Comparison, ErarsLargestErrorIsNoLargerThanAFloatRings) {
  for (const Gradients input : {Gradients::kNormal, Gradients::kLognormal, Gradients::kSparse,
                                Gradients::kOutlier, Gradients::kLayers}) {
    for (const unsigned ranks : {2U, 4U, 8U, 16U, 64U}) {
      // Of two sparse vectors few sums have two addends, and those may all be exact in floats.
      if (input == Gradients::kSparse && ranks == 2) continue;
      for (std::uint64_t seed = 1; seed <= 3; seed++) {
        const auto lost = losses(compared(input, ranks, seed));
        EXPECT_TRUE(lost.empty()) << "seed " << seed << ": " << text_of(lost);
      }
    }
  }
}

TEST(Comparison, ChecksNameTheCase) {
  Row erar;
  erar.input = Gradients::kSparse;
  erar.ranks = 8;
  erar.errors.largest = 2e-7;
  erar.share_of_bound = 1.25;
  erar.ranks_agree = false;
  Row ring = erar;
  ring.method = Method::kFloatRing;
  ring.errors.largest = 1e-7;
  ring.share_of_bound.reset();
  ring.ranks_agree = true;
  Row other_ranks = ring;
  other_ranks.ranks = 4;
  other_ranks.errors.largest = 0;
  const auto failed = failed_checks({erar, other_ranks, ring});
  EXPECT_EQ(text_of(failed),
            "sparse, 8 ranks: erar's bits differ between ranks\n"
            "sparse, 8 ranks: erar's error is 1.25 times its bound\n");
  EXPECT_EQ(text_of(losses({erar, other_ranks, ring})),
            "sparse, 8 ranks: erar's largest error 2e-07 is above float32-ring's 1e-07\n");
  ring.errors.largest = 1.9999e-7;
  EXPECT_EQ(text_of(losses({erar, ring})),
            "sparse, 8 ranks: erar's largest error 2e-07 is above float32-ring's 1.9999e-07\n");
  EXPECT_TRUE(failed_checks({ring, other_ranks}).empty());
  EXPECT_TRUE(losses({ring, other_ranks}).empty());
  EXPECT_EQ(table_footer({}, {"b"}), "#\n# LOSES: b\n# all checks hold\n");
  EXPECT_EQ(table_footer({"a"}, {}), "#\n# FAILED: a\n# 1 checks FAILED\n");
}

TEST(NumericsOptions, RefusalsNameOptionValueAndWhatIsAllowed) {
  const auto refused = [](std::string NumericsArguments::*option, const std::string& value) {
    NumericsArguments arguments;
    arguments.*option = value;
    const auto parsed = parse_numerics_options(arguments);
    return parsed ? std::string("accepted") : parsed.error().message();
  };
  for (const char* value : {"1", "65", "2,,4", "", "x", "2,4x", " 2", "-2"})
    EXPECT_NE(refused(&NumericsArguments::ranks, value).find("2 to 64"), std::string::npos);
  EXPECT_EQ(refused(&NumericsArguments::ranks, "2,4,2"), "--ranks 2,4,2: names 2 twice");
  for (const char* value : {"0", "16777217", "", "1K"})
    EXPECT_NE(refused(&NumericsArguments::count, value).find("1 to 16777216"), std::string::npos);
  for (const char* value : {"-1", "", "1.5"})
    EXPECT_NE(refused(&NumericsArguments::seed, value).find("--seed"), std::string::npos);
  EXPECT_EQ(refused(&NumericsArguments::ranks, "64,2"), "accepted");
  NumericsArguments arguments;
  arguments.json = "no-such-file";
  arguments.csv = "./no-such-file";
  const auto parsed = parse_numerics_options(arguments);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message(),
            "--json no-such-file --csv ./no-such-file: both options name the same file");
}

}  // namespace
}  // namespace erar::numerics
