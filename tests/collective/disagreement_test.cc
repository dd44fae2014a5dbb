// Calls that differ between ranks: the same error on all of them, and the next call is right.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/collective/reduction_oracle.h"
#include "tests/fixtures/memory_group.h"

namespace erar::tests {
namespace {

struct Call {
  std::size_t count = 0;
  Reduction reduction;
};

Reduction sum_of(DataType type) {
  Reduction reduction;
  reduction.type = type;
  return reduction;
}

Reduction compressed_floats() {
  Reduction reduction = sum_of(DataType::kFloat32);
  reduction.compressed = true;
  return reduction;
}

// All ranks but `odd` make the first call, `odd` the second. Returns the ranks' messages.
std::vector<std::string> call_differently(MemoryGroup& group, unsigned odd, const Call& common,
                                          const Call& other) {
  std::vector<std::string> messages(group.ranks());
  group.run([&](unsigned rank, RingAllreduce& ring) {
    const Call& call = rank == odd ? other : common;
    // A count that no memory holds is refused before anything is touched.
    const std::size_t bytes = call.count > (1U << 24) ? 1U << 20 : call.count * 8;
    std::vector<std::byte> input(bytes), output(bytes);
    const auto done = ring.allreduce(input.data(), output.data(), call.count, call.reduction);
    messages[rank] = done ? "no error" : done.error().message();
  });
  return messages;
}

void expect_next_call_right(MemoryGroup& group, Random& random) {
  const Reduction reduction = sum_of(DataType::kInt32);
  std::vector<Bytes> inputs;
  for (unsigned rank = 0; rank < group.ranks(); rank++)
    inputs.push_back(draw(reduction.type, Inputs::kGradients, 3000, rank, random));
  group.run([&](unsigned rank, RingAllreduce& ring) {
    Bytes result(inputs[rank].size());
    const auto done = ring.allreduce(inputs[rank].data(), result.data(), 3000, reduction);
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_EQ(what_is_wrong(reduction, inputs, result), "") << "rank " << rank;
  });
}

struct Difference {
  const char* name;
  Call common;
  Call other;
  std::string message;  // with rank 2 of 4 as the odd one
};

std::vector<Difference> differences() {
  const Call floats{5000, sum_of(DataType::kFloat32)};
  const Call ints{5000, sum_of(DataType::kInt32)};
  const Call few{10, sum_of(DataType::kInt32)};
  const auto changed = [](Call call, auto change) {
    change(call);
    return call;
  };
  return {
      {"count", floats, changed(floats, [](Call& c) { c.count = 5001; }),
       "allreduce: ranks disagree on count: 5000 on ranks 0, 1, 3; 5001 on rank 2"},
      {"count_within_a_chunk", few, changed(few, [](Call& c) { c.count = 11; }),
       "allreduce: ranks disagree on count: 10 on ranks 0, 1, 3; 11 on rank 2"},
      {"count_zero", ints, changed(ints, [](Call& c) { c.count = 0; }),
       "allreduce: ranks disagree on count: 5000 on ranks 0, 1, 3; 0 on rank 2"},
      {"count_small_and_large", few, changed(few, [](Call& c) { c.count = 1'000'000; }),
       "allreduce: ranks disagree on count: 10 on ranks 0, 1, 3; 1000000 on rank 2"},
      {"type", floats, ints,
       "allreduce: ranks disagree on type: float32 on ranks 0, 1, 3; int32 on rank 2"},
      {"type_of_equal_lanes", ints,
       changed(ints, [](Call& c) { c.reduction.type = DataType::kUint32; }),
       "allreduce: ranks disagree on type: int32 on ranks 0, 1, 3; uint32 on rank 2"},
      {"operation", ints, changed(ints, [](Call& c) { c.reduction.op = ReduceOp::kMax; }),
       "allreduce: ranks disagree on operation: sum on ranks 0, 1, 3; max on rank 2"},
      {"operation_inline", few, changed(few, [](Call& c) { c.reduction.op = ReduceOp::kMin; }),
       "allreduce: ranks disagree on operation: sum on ranks 0, 1, 3; min on rank 2"},
      {"operation_of_floats", floats,
       changed(floats, [](Call& c) { c.reduction.op = ReduceOp::kAverage; }),
       "allreduce: ranks disagree on operation: sum on ranks 0, 1, 3; avg on rank 2"},
      {"pre_scale", floats, changed(floats, [](Call& c) { c.reduction.pre_scale = 0.25; }),
       "allreduce: ranks disagree on pre-scale factor: 1 on ranks 0, 1, 3; 0.25 on rank 2"},
      {"compression", floats, changed(floats, [](Call& c) { c.reduction.compressed = true; }),
       "allreduce: ranks disagree on compression: off on ranks 0, 1, 3; on on rank 2"},
      {"not_finite", floats,
       changed(floats, [](Call& c) { c.reduction.not_finite = NotFinite::kPropagate; }),
       "allreduce: ranks disagree on what becomes of NaN: refuse on ranks 0, 1, 3; propagate on "
       "rank 2"},
      {"several", floats, changed(ints, [](Call& c) { c.count = 7; }),
       "allreduce: ranks disagree on type: float32 on ranks 0, 1, 3; int32 on rank 2, and on "
       "count: 5000 on ranks 0, 1, 3; 7 on rank 2"},
      // The odd one's call would be refused by itself.
      {"refused_alone", ints, changed(ints, [](Call& c) { c.reduction.pre_scale = 0.5; }),
       "allreduce: ranks disagree on pre-scale factor: 1 on ranks 0, 1, 3; 0.5 on rank 2"},
      {"count_beyond_memory", ints,
       changed(ints, [](Call& c) { c.count = std::numeric_limits<std::size_t>::max(); }),
       "allreduce: ranks disagree on count: 5000 on ranks 0, 1, 3; 18446744073709551615 on rank "
       "2"},
      {"compressed_count_beyond_memory",
       changed(floats, [](Call& c) { c.reduction.compressed = true; }),
       {std::size_t{1} << 45, compressed_floats()},
       "allreduce: ranks disagree on count: 5000 on ranks 0, 1, 3; 35184372088832 on rank 2"},
      {"no_type", floats,
       changed(floats, [](Call& c) { c.reduction.type = static_cast<DataType>(77); }),
       "allreduce: ranks disagree on type: float32 on ranks 0, 1, 3; number 77 on rank 2"},
  };
}

class Disagreement : public testing::TestWithParam<Difference> {};

TEST_P(Disagreement, IsTheSameErrorOnAllRanksAndTheNextCallIsRight) {
  Random random(7);
  for (std::uint64_t seed = 1; seed <= 8; seed++) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    MemoryGroupOptions options;
    options.mtu = seed % 2 == 0 ? 576 : 3498;
    options.seed = seed;
    MemoryGroup group(options);
    for (int round = 0; round < 3; round++) {
      const auto messages = call_differently(group, 2, GetParam().common, GetParam().other);
      for (const std::string& message : messages) ASSERT_EQ(message, GetParam().message);
      ASSERT_NO_FATAL_FAILURE(expect_next_call_right(group, random));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, Disagreement, testing::ValuesIn(differences()),
                         [](const auto& difference) { return difference.param.name; });

TEST(Disagreements, OfEveryRankAreAllTold) {
  MemoryGroup group({});
  std::vector<std::string> messages(group.ranks());
  group.run([&](unsigned rank, RingAllreduce& ring) {
    std::vector<float> values(100);
    const auto done =
        ring.allreduce(values.data(), values.data(), 97 + rank, sum_of(DataType::kFloat32));
    messages[rank] = done ? "no error" : done.error().message();
  });
  for (const std::string& message : messages)
    EXPECT_EQ(message,
              "allreduce: ranks disagree on count: 97 on rank 0; 98 on rank 1; 99 on rank 2; 100 "
              "on rank 3");
}

TEST(Disagreements, OfTwoAndOf64Ranks) {
  for (const unsigned ranks : {2U, 64U}) {
    MemoryGroupOptions options;
    options.ranks = ranks;
    options.group_bytes = 4096;
    MemoryGroup group(options);
    const auto messages = call_differently(group, 1, {5000, sum_of(DataType::kInt64)},
                                           {5000, sum_of(DataType::kUint64)});
    for (const std::string& message : messages) {
      ASSERT_NE(message.find("int64 on rank"), std::string::npos) << message;
      ASSERT_EQ(message, messages[0]);
    }
    Random random(3);
    expect_next_call_right(group, random);
  }
}

// What all ranks ask for alike and none can do.
TEST(Refusals, AreTheSameOnAllRanksAndTheNextCallIsRight) {
  struct Refused {
    Call call;
    std::string message;
  };
  Reduction average = sum_of(DataType::kFloat32);
  average.op = ReduceOp::kAverage;
  average.pre_scale = 2;
  Reduction fraction = sum_of(DataType::kInt8);
  fraction.pre_scale = 0.5;
  Reduction compressed = sum_of(DataType::kFloat64);
  compressed.compressed = true;
  Reduction infinite = sum_of(DataType::kFloat32);
  infinite.pre_scale = std::numeric_limits<double>::infinity();
  const Reduction no_type = sum_of(static_cast<DataType>(77));
  Reduction no_operation = sum_of(DataType::kFloat32);
  no_operation.op = static_cast<ReduceOp>(9);
  const Refused cases[] = {
      {{10, average}, "allreduce avg of float32: a pre-scale factor is for sums only"},
      {{10, fraction},
       "allreduce sum of int8: the pre-scale factor of integers must be a whole number"},
      {{10, compressed},
       "allreduce sum of float64: compression is for sums and averages of float32, float16 and "
       "bfloat16"},
      {{10, no_type}, "allreduce: there is no type of number 77"},
      {{10, no_operation}, "allreduce: there is no operation of number 9"},
      {{10, infinite}, "allreduce sum of float32: the pre-scale factor must be finite"},
      {{std::size_t{1} << 62, sum_of(DataType::kInt32)},
       "allreduce of 4611686018427387904 elements: more than memory can hold"},
  };
  MemoryGroup group({});
  Random random(1);
  for (const Refused& refused : cases) {
    for (const std::string& message : call_differently(group, 0, refused.call, refused.call))
      EXPECT_EQ(message, refused.message);
    expect_next_call_right(group, random);
  }
}

}  // namespace
}  // namespace erar::tests
