// Compressed reductions: half the traffic, and error feedback over repeated calls.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/fixtures/memory_group.h"

namespace erar::tests {
namespace {

Reduction compressed_sum() {
  Reduction reduction;
  reduction.compressed = true;
  return reduction;
}

std::uint64_t bytes_received(MemoryGroup& group) {
  std::uint64_t bytes = 0;
  for (unsigned rank = 0; rank < group.ranks(); rank++)
    bytes += group.ring().rank(rank).counter(ERAR_COUNT_BYTES);
  return bytes;
}

TEST(Compressed, SendsHalfTheBytes) {
  constexpr std::size_t kCount = 200'000;
  std::uint64_t bytes[2];
  for (const bool compressed : {false, true}) {
    MemoryGroupOptions options;
    options.group_bytes = 1U << 16;
    MemoryGroup group(options);
    Reduction reduction;
    reduction.compressed = compressed;
    group.run([&](unsigned rank, RingAllreduce& ring) {
      std::vector<float> values(kCount, static_cast<float>(rank + 1));
      ASSERT_TRUE(ring.allreduce(values.data(), values.data(), kCount, reduction));
      ASSERT_EQ(values[kCount - 1], 10.0F);
    });
    bytes[compressed ? 1 : 0] = bytes_received(group);
  }
  EXPECT_LT(static_cast<double>(bytes[1]), 0.51 * static_cast<double>(bytes[0]));
}

// The error of one call goes with the next: over K calls on one buffer the errors do not add up, as
// they do on buffers that are never seen again.
TEST(Compressed, FeedsTheErrorBackIntoTheNextCallOnTheSameBuffer) {
  constexpr std::size_t kCount = 3000;
  constexpr int kCalls = 64;
  constexpr unsigned kRanks = 4;
  MemoryGroupOptions options;
  options.ranks = kRanks;
  double worst[2] = {0, 0};
  for (const bool same_buffer : {false, true}) {
    MemoryGroup group(options);
    std::vector<std::vector<float>> values(kRanks);
    std::vector<double> exact(kCount);
    std::mt19937_64 random(3);
    for (auto& mine : values)
      for (std::size_t i = 0; i < kCount; i++) {
        mine.push_back(std::normal_distribution<float>(0, 1)(random));
        exact[i] += mine.back();
      }
    std::vector<double> total(kCount);
    group.run([&](unsigned rank, RingAllreduce& ring) {
      std::vector<std::vector<float>> inputs(same_buffer ? 1 : kCalls, values[rank]);
      std::vector<float> output(kCount);
      for (int call = 0; call < kCalls; call++) {
        const auto& input = inputs[same_buffer ? 0 : static_cast<std::size_t>(call)];
        ASSERT_TRUE(ring.allreduce(input.data(), output.data(), kCount, compressed_sum()));
        if (rank == 0)
          for (std::size_t i = 0; i < kCount; i++) total[i] += output[i];
      }
    });
    for (std::size_t i = 0; i < kCount; i++)
      worst[same_buffer ? 1 : 0] =
          std::max(worst[same_buffer ? 1 : 0], std::fabs(total[i] - kCalls * exact[i]));
  }
  EXPECT_LT(worst[1] * 10, worst[0]);
  // What is left is what the last call could not send: a step per rank.
  EXPECT_LT(worst[1], kRanks * std::ldexp(8.0, -13));
}

// What was refused was not sent: the residual of the call before is still to be sent.
TEST(Compressed, ARefusedCallLeavesTheResidual) {
  std::vector<float> results[2];
  for (const bool refused : {false, true}) {
    MemoryGroup group({});
    group.run([&](unsigned rank, RingAllreduce& ring) {
      std::vector<float> values(2000, 1.0F / 3), output(2000);
      ASSERT_TRUE(ring.allreduce(values.data(), output.data(), 2000, compressed_sum()));
      if (refused) {
        const std::size_t count = rank == 1 ? 1999 : 2000;
        ASSERT_FALSE(ring.allreduce(values.data(), output.data(), count, compressed_sum()));
        values[7] = rank == 2 ? INFINITY : values[7];
        ASSERT_FALSE(ring.allreduce(values.data(), output.data(), 2000, compressed_sum()));
        values[7] = 1.0F / 3;
      }
      ASSERT_TRUE(ring.allreduce(values.data(), output.data(), 2000, compressed_sum()));
      if (rank == 0) results[refused ? 1 : 0] = output;
    });
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Compressed, AnotherCountOrTypeOnTheSameAddressStartsAnew) {
  MemoryGroup group({});
  group.run([&](unsigned rank, RingAllreduce& ring) {
    std::vector<float> values(2000, 1.0F / 3);
    std::vector<float> first(2000), again(2000);
    Reduction reduction = compressed_sum();
    ASSERT_TRUE(ring.allreduce(values.data(), first.data(), 2000, reduction));
    ASSERT_TRUE(ring.allreduce(values.data(), again.data(), 1999, reduction));
    for (std::size_t i = 0; i < 1999; i++) ASSERT_EQ(first[i], again[i]) << rank;
  });
}

}  // namespace
}  // namespace erar::tests
