// Whole calls over simulated links: every single loss and duplication, and a quick set of random
// faults.
#include <gtest/gtest.h>

#include <iostream>
#include <numeric>
#include <vector>

#include "core/collective/ring_allreduce.h"
#include "sim/network/simulated_device.h"
#include "tests/simulation/scenario.h"

namespace erar::tests {
namespace {

// Which frame of a run, counted as they are sent, is lost or sent twice.
struct SingleFault {
  std::uint64_t frame = UINT64_MAX;
  bool duplicate = false;
};

struct Outcome {
  std::uint64_t frames = 0;  // that were sent
  std::vector<std::string> wrong;
  std::uint64_t resent = 0;
  std::string faulty;  // the frame that was it
};

std::string describe(const sim::Frame& frame) {
  const auto& header = *reinterpret_cast<const erar_frame*>(frame.data());
  return "type " + std::to_string(header.type) + " block " +
         std::to_string(ERAR_BE16(header.block)) + " segment " +
         std::to_string(ERAR_BE32(header.segment)) + " hop " + std::to_string(header.hop) +
         " of operation " + std::to_string(ERAR_BE32(header.operation));
}

struct Shape {
  unsigned ranks;
  std::size_t count;
  bool registered;
  DataType type = DataType::kInt64;
};

// Two calls on every rank, of a sum of `count` elements whose sums are exact.
template <typename Value>
Outcome reduce_twice(const Shape& shape, SingleFault fault) {
  const auto [ranks, count, registered, type] = shape;
  sim::SimulatedRingOptions options;
  options.ranks = ranks;
  options.mtu = 200;  // two chunks
  options.arena_segments =
      static_cast<std::uint32_t>(RingAllreduce::arena_segments(2048, 1U << 16, 128));
  sim::SimulatedRing ring(options);
  Outcome outcome;
  const auto is_it = [&](unsigned, const sim::Frame& frame) {
    const bool it = outcome.frames++ == fault.frame;
    if (it) outcome.faulty = describe(frame);
    return it;
  };
  if (fault.duplicate) {
    ring.duplicate_if(is_it);
  } else {
    ring.lose_if(is_it);
  }
  for (unsigned rank = 0; rank < ranks; rank++)
    ring.spawn(rank, 1 + rank * 500, [&, rank] {
      sim::SimulatedDevice device(ring, rank);
      RingAllreduceOptions ring_options;
      ring_options.group_bytes = 2048;
      auto allreduce = RingAllreduce::open(device, ring_options);
      std::vector<Value> own(count);
      for (int call = 0; call < 2; call++) {
        Value* values = own.data();
        if (registered)
          values =
              reinterpret_cast<Value*>((*(*allreduce)->allocate(count * sizeof(Value))).data());
        std::iota(values, values + count, static_cast<Value>(rank * 1000 + call));
        Reduction sum;
        sum.type = type;
        auto done = (*allreduce)->allreduce(values, values, count, sum);
        if (!done) outcome.wrong.push_back(done.error().message());
        for (std::size_t i = 0; done && i < count; i++) {
          const std::size_t expected = ranks * (i + call) + 1000 * ranks * (ranks - 1) / 2;
          if (values[i] != static_cast<Value>(expected))
            outcome.wrong.push_back("rank " + std::to_string(rank) + " element " +
                                    std::to_string(i) + " is " + std::to_string(values[i]));
        }
      }
    });
  if (auto endless = ring.run(20'000'000'000)) outcome.wrong.push_back(*endless);
  for (unsigned rank = 0; rank < ranks; rank++)
    outcome.resent +=
        ring.rank(rank).counter(ERAR_COUNT_RESENT) + ring.rank(rank).counter(ERAR_COUNT_REQUESTED);
  return outcome;
}

Outcome reduce_twice(const Shape& shape, SingleFault fault) {
  return shape.type == DataType::kFloat32 ? reduce_twice<float>(shape, fault)
                                          : reduce_twice<std::int64_t>(shape, fault);
}

class SingleFaults : public testing::TestWithParam<Shape> {};

TEST_P(SingleFaults, OfEveryFrameAreHealed) {
  const std::uint64_t frames = reduce_twice(GetParam(), {}).frames;
  ASSERT_GT(frames, 0U);
  std::uint64_t resent = 0;
  for (const bool duplicate : {false, true})
    for (std::uint64_t frame = 0; frame < frames; frame++) {
      const Outcome outcome = reduce_twice(GetParam(), {frame, duplicate});
      ASSERT_TRUE(outcome.wrong.empty()) << (duplicate ? "duplicate of " : "loss of ")
                                         << outcome.faulty << ": " << outcome.wrong.front();
      resent += outcome.resent;
    }
  EXPECT_GE(resent, frames) << "a lost frame is not missed";
  std::cout << frames << " frames lost and doubled, one at a time\n";
}

// Counts that fit into the opening, that take a few segments, more than a window, several groups;
// and floats of two groups whose records do not fit into the opening.
INSTANTIATE_TEST_SUITE_P(Calls, SingleFaults,
                         testing::Values(Shape{2, 5, false}, Shape{2, 60, false},
                                         Shape{3, 60, true}, Shape{4, 5, false},
                                         Shape{4, 60, false}, Shape{4, 61, true},
                                         Shape{4, 700, false}, Shape{4, 1200, true},
                                         Shape{5, 100, false},
                                         Shape{4, 1025, false, DataType::kFloat32},
                                         Shape{3, 2049, false, DataType::kFloat32}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.ranks) + "_ranks_" +
                                  std::to_string(shape.param.count) + "_" +
                                  std::string(name_of(shape.param.type)) +
                                  (shape.param.registered ? "_registered" : "");
                         });

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kQuickSeeds = 700;
constexpr std::uint64_t kQuickCalls = 2'500;
#else
constexpr std::uint64_t kQuickSeeds = 5'200;
constexpr std::uint64_t kQuickCalls = 20'000;
#endif

TEST(RandomFaults, QuickSet) {
  ScenarioResult total;
  for (std::uint64_t seed = 0; seed < kQuickSeeds; seed++) {
    const ScenarioResult result = run_scenario(Scenario::of(seed));
    ASSERT_FALSE(result.wrong) << *result.wrong << "\nreplay: tests/simulate --seeds " << seed;
    total += result;
  }
  std::cout << total.calls << " calls, " << total.frames << " frames, " << total.lost
            << " segments overdue, " << total.errors << " errors\n";
  EXPECT_GE(total.calls, kQuickCalls);
  EXPECT_GT(total.lost, total.calls) << "too few faults to mean anything";
  EXPECT_GT(total.errors, 0U);
}

// The same seed is the same run, to the frame.
TEST(RandomFaults, ReplayExactly) {
  for (const std::uint64_t seed : {3U, 98U, 501U, 555U}) {
    const ScenarioResult one = run_scenario(Scenario::of(seed));
    const ScenarioResult two = run_scenario(Scenario::of(seed));
    EXPECT_EQ(one.frames, two.frames);
    EXPECT_EQ(one.lost, two.lost);
    EXPECT_EQ(one.duplicates, two.duplicates);
  }
}

}  // namespace
}  // namespace erar::tests
