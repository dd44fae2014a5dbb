// Averages of integers against __int128, on every instruction set the CPU has.
#include "core/numeric/integer_average.h"

#include "tests/unit/instruction_set_fixture.h"

#include <limits>
#include <type_traits>

namespace erar::numeric {
namespace {

__extension__ using Wide = __int128;

class IntegerAverageTest : public InstructionSetTest {};
INSTANTIATE_TEST_SUITE_P(InstructionSets, IntegerAverageTest, instruction_sets(),
                         instruction_set_name);

template <class Integer>
constexpr DataType type_of() {
  if constexpr (std::is_same_v<Integer, std::int8_t>) return DataType::kInt8;
  if constexpr (std::is_same_v<Integer, std::uint8_t>) return DataType::kUint8;
  if constexpr (std::is_same_v<Integer, std::int32_t>) return DataType::kInt32;
  if constexpr (std::is_same_v<Integer, std::uint32_t>) return DataType::kUint32;
  if constexpr (std::is_same_v<Integer, std::int64_t>) return DataType::kInt64;
  return DataType::kUint64;
}

// The operation for each integer type, given a value of it.
template <class Operation>
void for_each_type(Operation operation) {
  operation(std::int8_t{});
  operation(std::uint8_t{});
  operation(std::int32_t{});
  operation(std::uint32_t{});
  operation(std::int64_t{});
  operation(std::uint64_t{});
}

// Lanes as whole words, as the kernel adds them.
template <class Integer>
std::vector<std::uint64_t> lanes_of(const std::vector<Integer>& values, unsigned ranks) {
  const std::size_t bytes = values.size() * average_lane_bytes(type_of<Integer>());
  std::vector<std::uint64_t> lanes((bytes + 7) / 8);
  to_average_lanes(type_of<Integer>(), ranks, values.data(), values.size(), lanes.data());
  return lanes;
}

template <class Integer>
std::vector<Integer> averages_of(const std::vector<std::vector<Integer>>& inputs) {
  const auto ranks = static_cast<unsigned>(inputs.size());
  const std::size_t count = inputs.front().size();
  std::vector<std::uint64_t> sum = lanes_of(inputs.front(), ranks);
  for (unsigned rank = 1; rank < ranks; ++rank) {
    const std::vector<std::uint64_t> lanes = lanes_of(inputs[rank], ranks);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += lanes[i];
  }
  std::vector<Integer> averages(count);
  from_average_lanes(type_of<Integer>(), ranks, sum.data(), count, averages.data());
  return averages;
}

template <class Integer>
void check(const std::vector<std::vector<Integer>>& inputs) {
  const std::vector<Integer> averages = averages_of(inputs);
  for (std::size_t i = 0; i < averages.size(); ++i) {
    Wide sum = 0;
    for (const std::vector<Integer>& values : inputs) sum += values[i];
    // C++ division truncates.
    const auto expected = static_cast<Integer>(sum / static_cast<Wide>(inputs.size()));
    ASSERT_EQ(averages[i], expected)
        << name_of(type_of<Integer>()) << " x " << inputs.size() << ", element " << i;
  }
}

// Anything, numbers around zero (where sums cross it), and the ends of the range.
template <class Integer>
Integer any(Random& random) {
  using Limits = std::numeric_limits<Integer>;
  const std::uint64_t draw = random();
  const auto small = static_cast<Integer>(draw >> 8 & 0x3);
  switch (draw % 8) {
    case 0:
      return static_cast<Integer>(Limits::max() - small);
    case 1:
      return static_cast<Integer>(Limits::min() + small);
    case 2:
    case 3:
      return static_cast<Integer>(small - 2);
    case 4:
      return static_cast<Integer>(Limits::max() / 2 + small);
    default:
      return static_cast<Integer>(random() >> (draw >> 16) % 64);
  }
}

template <class Integer>
std::vector<Integer> any_values(std::size_t count, Random& random) {
  std::vector<Integer> values(count);
  for (Integer& value : values) value = any<Integer>(random);
  return values;
}

TEST_P(IntegerAverageTest, MatchesOracleForEveryRankCount) {
  for_each_type([&]<class Integer>(Integer) {
    for (unsigned ranks = 1; ranks <= 64; ++ranks) {
      std::vector<std::vector<Integer>> inputs(ranks);
      for (auto& values : inputs) values = any_values<Integer>(333, random_);
      ASSERT_NO_FATAL_FAILURE(check(inputs));
    }
  });
}

TEST_P(IntegerAverageTest, MatchesOracleForEveryCount) {
  for_each_type([&]<class Integer>(Integer) {
    for (const std::size_t count : kCounts) {
      std::vector<std::vector<Integer>> inputs(3);
      for (auto& values : inputs) values = any_values<Integer>(count, random_);
      ASSERT_NO_FATAL_FAILURE(check(inputs));
    }
  });
}

// All ranks at one end of the range, all but one, and one of them off by a few: sums at the limits
// of the lanes and on both sides of a multiple of ranks.
TEST_P(IntegerAverageTest, EndsOfTheRange) {
  for_each_type([&]<class Integer>(Integer) {
    using Limits = std::numeric_limits<Integer>;
    const std::vector<Integer> ends = {Limits::min(),
                                       static_cast<Integer>(Limits::min() + 1),
                                       Limits::max(),
                                       static_cast<Integer>(Limits::max() - 1),
                                       Integer{0},
                                       Integer{1},
                                       static_cast<Integer>(-1)};
    for (unsigned ranks = 1; ranks <= 64; ++ranks) {
      std::vector<std::vector<Integer>> inputs(ranks);
      for (unsigned rank = 0; rank < ranks; ++rank) {
        for (const Integer all : ends) {
          for (const Integer odd_one : ends) inputs[rank].push_back(rank == 0 ? odd_one : all);
        }
      }
      ASSERT_NO_FATAL_FAILURE(check(inputs));
    }
  });
}

// Every sum that 8-bit integers can have, and all sums near zero of the wider ones.
TEST_P(IntegerAverageTest, EverySumTruncatesTowardsZero) {
  for_each_type([&]<class Integer>(Integer) {
    for (unsigned ranks = 1; ranks <= 64; ++ranks) {
      std::vector<std::vector<Integer>> inputs(ranks);
      const auto least = static_cast<std::int64_t>(std::is_signed_v<Integer> ? -128 : 0);
      for (std::int64_t sum = least * ranks; sum <= (least + 255) * ranks; ++sum) {
        const std::int64_t above = sum - least * ranks;
        for (unsigned rank = 0; rank < ranks; ++rank) {
          const std::int64_t share = above / ranks + (rank < above % ranks ? 1 : 0);
          inputs[rank].push_back(static_cast<Integer>(least + share));
        }
      }
      ASSERT_NO_FATAL_FAILURE(check(inputs));
    }
  });
}

TEST_P(IntegerAverageTest, SixtyFourBitLanesAreQuotientAndRemainder) {
  for_each_type([&]<class Integer>(Integer) {
    if (average_lane_bytes(type_of<Integer>()) != 16) return;
    for (unsigned ranks = 1; ranks <= 64; ++ranks) {
      std::vector<Integer> values = any_values<Integer>(1000, random_);
      for (unsigned i = 0; i < 200; ++i) values[i] = static_cast<Integer>(Integer{1} * ranks * i);
      const std::vector<std::uint64_t> lanes = lanes_of(values, ranks);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Wide biased = Wide{values[i]} - std::numeric_limits<Integer>::min();
        ASSERT_TRUE(lanes[2 * i] == biased / ranks) << values[i] << " / " << ranks;
        ASSERT_TRUE(lanes[2 * i + 1] == biased % ranks) << values[i] << " / " << ranks;
      }
    }
  });
}

// Lanes at the ends of their range, summed in words and each alone.
TEST_P(IntegerAverageTest, LanesNeverCarry) {
  for_each_type([&]<class Integer>(Integer) {
    if (average_lane_bytes(type_of<Integer>()) != 2) return;
    for (const Integer value :
         {std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max()}) {
      const std::vector<std::uint64_t> lanes = lanes_of(std::vector<Integer>(4, value), 64);
      const std::uint64_t sum = lanes[0] * 64;
      for (unsigned lane = 0; lane < 4; ++lane) {
        ASSERT_EQ(sum >> 16 * lane & 0xffff, (lanes[0] & 0xffff) * 64) << lane;
      }
    }
  });
}

TEST_P(IntegerAverageTest, ScalingWrapsAndWorksInPlace) {
  for_each_type([&]<class Integer>(Integer) {
    constexpr DataType kType = type_of<Integer>();
    constexpr std::int64_t kMinimum = std::numeric_limits<std::int64_t>::min();
    for (const std::int64_t factor :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{3}, std::int64_t{-128},
          kMinimum, ~kMinimum, static_cast<std::int64_t>(random_())}) {
      for (const std::size_t count : kCounts) {
        const std::vector<Integer> values = any_values<Integer>(count, random_);
        std::vector<Integer> expected;
        for (const Integer value : values) {
          const Wide product = static_cast<Wide>(value) * factor;
          expected.push_back(static_cast<Integer>(static_cast<std::uint64_t>(product)));
        }
        std::vector<Integer> out(count);
        scale_integers(kType, values.data(), count, factor, out.data());
        ASSERT_EQ(out, expected) << name_of(kType) << " * " << factor;
        Misaligned<Integer> in_place(count, 1);
        in_place.fill(values);
        scale_integers(kType, in_place.data(), count, factor, in_place.data());
        ASSERT_TRUE(in_place.holds(expected) && in_place.margin_is_untouched());
      }
    }
  });
}

TEST_P(IntegerAverageTest, UnalignedAndNothingBeyond) {
  for_each_type([&]<class Integer>(Integer) {
    constexpr DataType kType = type_of<Integer>();
    for (const std::size_t count : kCounts) {
      const std::vector<Integer> values = any_values<Integer>(count, random_);
      std::vector<unsigned char> lanes(count * average_lane_bytes(kType));
      to_average_lanes(kType, 1, values.data(), count, lanes.data());
      for (std::size_t offset = 0; offset < 9; ++offset) {
        Misaligned<unsigned char> moved_lanes(lanes.size(), offset);
        Misaligned<Integer> moved_values(count, offset);
        moved_values.fill(values);
        to_average_lanes(kType, 1, moved_values.data(), count, moved_lanes.data());
        ASSERT_TRUE(moved_lanes.holds(lanes) && moved_lanes.margin_is_untouched());
        moved_values.fill(std::vector<Integer>(count));
        from_average_lanes(kType, 1, moved_lanes.data(), count, moved_values.data());
        ASSERT_TRUE(moved_values.holds(values) && moved_values.margin_is_untouched());
      }
    }
  });
}

TEST_P(IntegerAverageTest, CallersFloatingPointModeDoesNotMatter) {
  for_each_type([&]<class Integer>(Integer) {
    std::vector<std::vector<Integer>> inputs(7);
    for (auto& values : inputs) values = any_values<Integer>(2000, random_);
    const std::vector<Integer> averages = averages_of(inputs);
    for (const unsigned mode : kHostileModes) {
      std::vector<Integer> averages_there;
      const unsigned after = in_mode(mode, [&] { averages_there = averages_of(inputs); });
      ASSERT_EQ(after, mode);
      ASSERT_EQ(averages, averages_there);
    }
  });
}

}  // namespace
}  // namespace erar::numeric
