// Allreduce over rings in memory: random reductions against an exact oracle, and what must not
// matter.
//
// ERAR_SEED replays a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>

#include "tests/collective/reduction_oracle.h"
#include "tests/fixtures/memory_group.h"

namespace erar::tests {
namespace {

constexpr std::size_t kMtus[] = {576, 1500, 3498};
constexpr std::size_t kGroupBytes[] = {4096, 20'000, 1U << 20};

std::string name_of_case(const Reduction& reduction, unsigned ranks, std::size_t count) {
  return std::string(name_of(reduction.op)) + " of " + std::to_string(count) + " " +
         std::string(name_of(reduction.type)) + (reduction.compressed ? " compressed" : "") +
         " over " + std::to_string(ranks) + " ranks, pre-scale " +
         std::to_string(reduction.pre_scale);
}

class AllreduceProperty : public testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("ERAR_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10)
                                                : std::uint64_t{std::random_device()()};
    std::cout << "ERAR_SEED=" << seed << '\n';
    random_.seed(seed);
  }

  Reduction draw_reduction() {
    Reduction reduction;
    reduction.type = kDataTypes[random_() % kDataTypes.size()];
    reduction.op = kReduceOps[random_() % kReduceOps.size()];
    if (reduction.op == ReduceOp::kSum && random_() % 4 == 0)
      reduction.pre_scale = is_float(reduction.type) ? 0.3 : -3;
    const bool sums = reduction.op == ReduceOp::kSum || reduction.op == ReduceOp::kAverage;
    if (is_float(reduction.type) && reduction.type != DataType::kFloat64 && sums)
      reduction.compressed = random_() % 3 == 0;
    return reduction;
  }

  std::size_t draw_count() {
    // Around every limit that there is, and anything.
    constexpr std::size_t kEdges[] = {0, 1, 2, 15, 16, 17, 255, 256, 257, 1023, 1024, 1025, 8191};
    return random_() % 2 == 0 ? kEdges[random_() % std::size(kEdges)] : random_() % 12'000;
  }

  std::vector<Bytes> draw_inputs(const Reduction& reduction, unsigned ranks, std::size_t count) {
    const auto kind = static_cast<Inputs>(random_() % kInputKinds);
    std::vector<Bytes> inputs;
    for (unsigned rank = 0; rank < ranks; rank++)
      inputs.push_back(draw(reduction.type, kind, count, rank, random_));
    return inputs;
  }

  MemoryGroupOptions draw_options(unsigned ranks) {
    MemoryGroupOptions options;
    options.ranks = ranks;
    options.mtu = static_cast<unsigned>(kMtus[random_() % std::size(kMtus)]);
    options.group_bytes = kGroupBytes[random_() % std::size(kGroupBytes)];
    options.registered_bytes = 1U << 18;
    options.seed = random_();
    options.reorder = random_() % 2 == 0;
    options.checksum = random_() % 4 != 0;
    return options;
  }

  Random random_;
};

// How a rank holds its buffer.
enum class Memory { kApart, kInPlace, kRegistered };

// One call on every rank; results[r] is rank r's. Errors are test failures.
std::vector<Bytes> reduce(MemoryGroup& group, const Reduction& reduction,
                          const std::vector<Bytes>& inputs, Memory memory) {
  std::vector<Bytes> results(inputs.size());
  group.run([&](unsigned rank, RingAllreduce& ring) {
    Bytes result = inputs[rank];
    const std::size_t count = result.size() / size_of(reduction.type);
    const void* input = inputs[rank].data();
    void* output = result.data();
    if (memory == Memory::kRegistered) {
      auto registered = ring.allocate(result.size());
      ASSERT_TRUE(registered) << registered.error().message();
      std::copy(result.begin(), result.end(), registered->begin());
      output = registered->data();
    }
    if (memory != Memory::kApart) input = output;
    const auto done = ring.allreduce(input, output, count, reduction);
    ASSERT_TRUE(done) << "rank " << rank << ": " << done.error().message();
    if (memory == Memory::kRegistered && count != 0)
      std::memcpy(result.data(), output, result.size());
    results[rank] = std::move(result);
  });
  return results;
}

TEST_F(AllreduceProperty, EveryElementIsWithinItsBoundAndAllRanksHaveTheSameBits) {
  for (int round = 0; round < 400; round++) {
    const Reduction reduction = draw_reduction();
    const auto ranks = static_cast<unsigned>(2 + random_() % 15);
    const std::size_t count = draw_count();
    SCOPED_TRACE(name_of_case(reduction, ranks, count));
    const auto inputs = draw_inputs(reduction, ranks, count);
    MemoryGroup group(draw_options(ranks));
    const auto results = reduce(group, reduction, inputs, static_cast<Memory>(random_() % 3));
    ASSERT_EQ(what_is_wrong(reduction, inputs, results[0]), "");
    for (const Bytes& result : results) ASSERT_EQ(result, results[0]);
  }
}

TEST_F(AllreduceProperty, RingOrderSegmentSizeGroupsAndDeliveryDoNotMatter) {
  for (int round = 0; round < 60; round++) {
    const Reduction reduction = draw_reduction();
    const auto ranks = static_cast<unsigned>(2 + random_() % 15);
    const std::size_t count = draw_count();
    SCOPED_TRACE(name_of_case(reduction, ranks, count));
    auto inputs = draw_inputs(reduction, ranks, count);
    Bytes first;
    for (int variant = 0; variant < 4; variant++) {
      MemoryGroup group(draw_options(ranks));
      const auto results = reduce(group, reduction, inputs, static_cast<Memory>(random_() % 3));
      if (variant == 0) first = results[0];
      ASSERT_EQ(results[0], first);
      std::shuffle(inputs.begin(), inputs.end(), random_);
    }
  }
}

// One backend, many calls: what one leaves behind must not reach the next.
TEST_F(AllreduceProperty, ManyDifferentCallsInARow) {
  MemoryGroupOptions options = draw_options(5);
  options.registered_bytes = 1U << 24;
  MemoryGroup group(options);
  for (int round = 0; round < 150; round++) {
    Reduction reduction = draw_reduction();
    reduction.compressed = false;  // its residuals are another test's
    const std::size_t count = draw_count();
    SCOPED_TRACE(name_of_case(reduction, group.ranks(), count));
    const auto inputs = draw_inputs(reduction, group.ranks(), count);
    const auto results = reduce(group, reduction, inputs, static_cast<Memory>(random_() % 3));
    ASSERT_EQ(what_is_wrong(reduction, inputs, results[0]), "");
    for (const Bytes& result : results) ASSERT_EQ(result, results[0]);
  }
}

}  // namespace
}  // namespace erar::tests
