// NaN and infinity: refused with rank and index, or spread to every rank.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/numeric/half.h"
#include "tests/collective/reduction_oracle.h"
#include "tests/fixtures/memory_group.h"

namespace erar::tests {
namespace {

constexpr std::size_t kCount = 30'000;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Poison {
  unsigned rank;
  std::size_t index;
  double value;
};

void put(DataType type, Bytes& bytes, std::size_t index, double value) {
  std::byte* at = bytes.data() + index * size_of(type);
  const auto narrow = static_cast<float>(value);
  std::uint16_t half = 0;
  if (size_of(type) == 2) numeric::float_to_half(numeric::half_kind_of(type), &narrow, 1, &half);
  const void* from = size_of(type) == 8   ? static_cast<const void*>(&value)
                     : size_of(type) == 4 ? static_cast<const void*>(&narrow)
                                          : static_cast<const void*>(&half);
  std::copy_n(static_cast<const std::byte*>(from), size_of(type), at);
}

double get(DataType type, const Bytes& bytes, std::size_t index) {
  const std::byte* at = bytes.data() + index * size_of(type);
  double value = 0;
  float narrow = 0;
  if (size_of(type) == 8) {
    std::copy_n(at, 8, reinterpret_cast<std::byte*>(&value));
    return value;
  }
  if (size_of(type) == 4) {
    std::copy_n(at, 4, reinterpret_cast<std::byte*>(&narrow));
    return narrow;
  }
  std::uint16_t half = 0;
  std::copy_n(at, 2, reinterpret_cast<std::byte*>(&half));
  numeric::half_to_float(numeric::half_kind_of(type), &half, 1, &narrow);
  return narrow;
}

struct Outcome {
  std::vector<std::string> messages;
  std::vector<Bytes> inputs;
  std::vector<Bytes> results;
};

Outcome reduce_poisoned(MemoryGroup& group, const Reduction& reduction,
                        const std::vector<Poison>& poisons, bool in_place, std::size_t count) {
  Random random(5);
  Outcome outcome;
  for (unsigned rank = 0; rank < group.ranks(); rank++) {
    outcome.inputs.push_back(draw(reduction.type, Inputs::kBlockwise, count, rank, random));
    for (const Poison& poison : poisons)
      if (poison.rank == rank)
        put(reduction.type, outcome.inputs[rank], poison.index, poison.value);
  }
  outcome.messages.resize(group.ranks());
  outcome.results = outcome.inputs;
  group.run([&](unsigned rank, RingAllreduce& ring) {
    const void* input = in_place ? outcome.results[rank].data() : outcome.inputs[rank].data();
    const auto done = ring.allreduce(input, outcome.results[rank].data(), count, reduction);
    if (!done) outcome.messages[rank] = done.error().message();
  });
  return outcome;
}

std::vector<Reduction> float_reductions() {
  std::vector<Reduction> all;
  for (const DataType type : kDataTypes) {
    for (const ReduceOp op : kReduceOps) {
      if (!is_float(type)) continue;
      Reduction reduction;
      reduction.type = type;
      reduction.op = op;
      all.push_back(reduction);
      reduction.compressed = true;
      if (check_reduction(reduction)) all.push_back(reduction);
    }
  }
  return all;
}

class NotFiniteInput : public testing::TestWithParam<Reduction> {
 protected:
  static MemoryGroupOptions options() {
    MemoryGroupOptions made;
    made.ranks = 5;
    made.group_bytes = 16'384;
    return made;
  }
};

TEST_P(NotFiniteInput, IsRefusedByAllRanksAlikeWithTheFirstOffender) {
  const Reduction& reduction = GetParam();
  const std::string begin = "allreduce " + std::string(name_of(reduction.op)) + " of " +
                            std::string(name_of(reduction.type)) + ": ";
  struct Case {
    std::vector<Poison> poisons;
    std::string message;
  };
  const Case cases[] = {
      {{{3, 12'345, kNaN}}, "rank 3 has NaN at element 12345"},
      {{{0, 0, kInfinity}}, "rank 0 has infinity at element 0"},
      {{{4, kCount - 1, -kInfinity}}, "rank 4 has -infinity at element 29999"},
      {{{1, 20'000, kNaN}, {2, 700, -kInfinity}, {4, 701, kNaN}},
       "rank 2 has -infinity at element 700"},
      {{{4, 5000, kNaN}, {2, 5000, kInfinity}}, "rank 2 has infinity at element 5000"},
  };
  MemoryGroup group(options());
  for (const bool in_place : {false, true}) {
    for (const Case& test : cases) {
      const Outcome outcome = reduce_poisoned(group, reduction, test.poisons, in_place, kCount);
      for (const std::string& message : outcome.messages) ASSERT_EQ(message, begin + test.message);
      const Outcome next = reduce_poisoned(group, reduction, {}, in_place, kCount);
      for (const std::string& message : next.messages) ASSERT_EQ(message, "");
    }
    // Small enough to travel in the call's first operation.
    const Outcome small = reduce_poisoned(group, reduction, {{1, 7, kNaN}}, in_place, 20);
    for (const std::string& message : small.messages)
      ASSERT_EQ(message, begin + "rank 1 has NaN at element 7");
  }
}

TEST_P(NotFiniteInput, IsSpreadToTheSameElementsOfEveryRankOnRequest) {
  Reduction reduction = GetParam();
  reduction.not_finite = NotFinite::kPropagate;
  const bool extreme = reduction.op == ReduceOp::kMin || reduction.op == ReduceOp::kMax;
  const std::vector<Poison> poisons = {{3, 12'345, kNaN},     {0, 0, kNaN},
                                       {4, kCount - 1, kNaN}, {2, 700, kInfinity},
                                       {1, 701, -kInfinity},  {1, 12'345, kInfinity}};
  MemoryGroup group(options());
  for (const bool in_place : {false, true}) {
    const Outcome outcome = reduce_poisoned(group, reduction, poisons, in_place, kCount);
    for (const std::string& message : outcome.messages) ASSERT_EQ(message, "");
    for (const Bytes& result : outcome.results) ASSERT_EQ(result, outcome.results[0]);
    const Bytes& result = outcome.results[0];
    for (const std::size_t index : {std::size_t{12'345}, std::size_t{0}, kCount - 1})
      EXPECT_TRUE(std::isnan(get(reduction.type, result, index))) << index;
    // An infinity is a value for minima and maxima; a sum has no lanes for it.
    const double at_700 = get(reduction.type, result, 700);
    const double at_701 = get(reduction.type, result, 701);
    if (extreme) {
      EXPECT_EQ(std::isinf(at_700), reduction.op == ReduceOp::kMax) << at_700;
      EXPECT_EQ(std::isinf(at_701), reduction.op == ReduceOp::kMin) << at_701;
    } else {
      EXPECT_TRUE(std::isnan(at_700) && std::isnan(at_701));
    }
    // Everything else is what it would be without: the poisoned elements are zero for all.
    auto inputs = outcome.inputs;
    Bytes rest = result;
    for (const Poison& poison : poisons) {
      for (Bytes& input : inputs) put(reduction.type, input, poison.index, 0);
      put(reduction.type, rest, poison.index, 0);
    }
    EXPECT_EQ(what_is_wrong(reduction, inputs, rest), "");
  }
}

TEST_P(NotFiniteInput, EverywhereIsNaNEverywhere) {
  Reduction reduction = GetParam();
  reduction.not_finite = NotFinite::kPropagate;
  std::vector<Poison> poisons;
  for (std::size_t i = 0; i < 5000; i++) poisons.push_back({i % 2 == 0 ? 1U : 3U, i, kNaN});
  MemoryGroup group(options());
  const Outcome outcome = reduce_poisoned(group, reduction, poisons, false, 5000);
  for (const Bytes& result : outcome.results)
    for (std::size_t i = 0; i < 5000; i++)
      ASSERT_TRUE(std::isnan(get(reduction.type, result, i))) << i;
}

INSTANTIATE_TEST_SUITE_P(Reductions, NotFiniteInput, testing::ValuesIn(float_reductions()),
                         [](const auto& reduction) {
                           const Reduction& r = reduction.param;
                           return std::string(name_of(r.type)) + "_" + std::string(name_of(r.op)) +
                                  (r.compressed ? "_compressed" : "");
                         });

}  // namespace
}  // namespace erar::tests
