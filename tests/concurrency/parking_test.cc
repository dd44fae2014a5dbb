// Early frames of two segments that share a parking place, come to two CPUs at once: one is laid
// down and resumed as it came, the other is dropped.
#include <gtest/gtest.h>

#include <array>
#include <iostream>

#include "core/session/operation_slot.h"
#include "tests/concurrency/crew.h"
#include "tests/concurrency/hammered_rank.h"

namespace erar::tests {
namespace {

constexpr auto kLength = std::chrono::milliseconds(300);

// Segments that are a window apart: where a larger window than the ring's places brings both, or
// where somebody sends what nobody should.
TEST(Parking, OfTwoFramesInOnePlaceResumesOneAsItCame) {
  constexpr unsigned kCpus = 2;
  HammeredRank rank(kCpus);
  Crew crew(kCpus);
  std::array<HammerFrame, kCpus> frames;
  HammerFrame resumed;
  std::uint64_t rounds = 0;
  std::array<std::uint64_t, kCpus> resumed_of{};
  for (const Stint stint(kLength); stint.goes_on(); rounds++) {
    SCOPED_TRACE(rounds);
    const auto number = static_cast<std::uint32_t>(ERAR_FIRST_OPERATION + rounds * ERAR_SLOTS);
    rank.reset_counts();
    for (unsigned cpu = 0; cpu < kCpus; cpu++)
      rank.write_frame(frames[cpu], ERAR_REDUCE_SCATTER, 1,
                       3 * HammeredRank::kPerBlock + cpu * HammeredRank::kWindow, number);
    crew.at_once([&](unsigned cpu) { ASSERT_EQ(rank.receive(cpu, frames[cpu]), Verdict::kDrop); });
    ASSERT_EQ(rank.counted(ERAR_COUNT_PARKED), 1U);
    ASSERT_EQ(rank.counted(ERAR_DROP_EARLY), kCpus - 1);
    rank.fill(number);
    const std::uint32_t due = open_operation(rank.on_cpu(0), HammeredRank::start_of(number));
    ASSERT_EQ(due, 1 + HammeredRank::kWindow);
    for (std::uint32_t i = 0; i < due; i++) {
      ASSERT_EQ(rank.kick(0, number, resumed), Verdict::kForward);
      ASSERT_EQ(rank.fault_of(resumed), "");
      const std::uint32_t segment = ERAR_BE32(resumed.header().segment);
      if (HammeredRank::block_of(segment) == 3)
        resumed_of[segment % HammeredRank::kPerBlock / HammeredRank::kWindow]++;
    }
  }
  std::cout << rounds << " rounds; resumed: " << resumed_of[0] << " of the one CPU's, "
            << resumed_of[1] << " of the other's\n";
  EXPECT_EQ(resumed_of[0] + resumed_of[1], rounds);
  if (!crew.has_cpu_each()) return;
  EXPECT_GT(resumed_of[0], 0U);
  EXPECT_GT(resumed_of[1], 0U);
}

}  // namespace
}  // namespace erar::tests
