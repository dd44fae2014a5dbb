// What a waiting process does: when segments count as lost, what is sent, and who is named.
#include "core/session/ring_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/ring/memory_rank.h"
#include "sim/ring/memory_ring.h"

namespace erar {
namespace {

constexpr std::uint64_t kMillisecond_ns = 1'000'000;
constexpr std::uint64_t kTimeout_ns = 1'000 * kMillisecond_ns;

TEST(ResendTimer, StaysWithinItsLimitsAndDoubles) {
  ResendTimer timer(1'000 * kMillisecond_ns);
  EXPECT_EQ(timer.overdue_ns(0), ResendTimer::kFirst_ns);
  timer.observe(1000, 1);
  EXPECT_EQ(timer.overdue_ns(0), ResendTimer::kLeast_ns);
  EXPECT_EQ(timer.overdue_ns(1), 2 * ResendTimer::kLeast_ns);
  EXPECT_EQ(timer.overdue_ns(50), ResendTimer::kLeast_ns << ResendTimer::kMostDoublings);
  for (int i = 0; i < 16; i++) timer.observe(60 * kMillisecond_ns, 20);  // 3 ms a turn
  EXPECT_EQ(timer.overdue_ns(0), 12 * kMillisecond_ns);
  for (int i = 0; i < 16; i++) timer.observe(1'000 * kMillisecond_ns, 1);
  EXPECT_EQ(timer.overdue_ns(0), ResendTimer::kMost_ns);
  ResendTimer short_timer(100);
  EXPECT_EQ(short_timer.overdue_ns(3), 100U);
}

class Watch : public testing::Test {
 protected:
  Watch()
      : rank_(sim::memory_ring_config(1, kRanks, 576, kSegments, 1)),
        watch_(rank_.memory(), kTimeout_ns) {}

  std::uint32_t start(std::uint32_t segments) {
    erar_start start{};
    start.number = ERAR_FIRST_OPERATION;
    start.segments = segments;
    start.last_bytes = 512 - 64;
    const std::uint32_t kicks = rank_.start(start);
    for (std::uint32_t i = 0; i < kicks; i++) {
      sim::Frame frame;
      rank_.kick(start.number, frame);
    }
    watch_.opened(start.number, 1);
    watch_.begin(1);
    return start.number;
  }
  Result<void> look(std::uint64_t now_ns) {
    sent_.clear();
    const std::uint32_t waited[] = {ERAR_FIRST_OPERATION};
    return watch_.look(waited, now_ns, kTimeout_ns, [this](std::span<const std::uint8_t> frame) {
      sent_.push_back(*reinterpret_cast<const erar_frame*>(frame.data()));
    });
  }
  std::size_t sent(erar_type type) const {
    std::size_t count = 0;
    for (const erar_frame& frame : sent_) count += frame.type == type;
    return count;
  }

  static constexpr unsigned kRanks = 4;
  static constexpr std::uint32_t kSegments = 400;
  sim::MemoryRank rank_;
  RingWatch watch_;
  std::vector<erar_frame> sent_;
};

TEST_F(Watch, SendsNothingBeforeItsTimeAndThenTheOwnWindowAndAFewRequests) {
  start(kSegments);
  ASSERT_TRUE(look(kMillisecond_ns));
  EXPECT_TRUE(sent_.empty());
  ASSERT_TRUE(look(20 * kMillisecond_ns));
  EXPECT_EQ(sent(ERAR_REDUCE_SCATTER), 16U);
  // Of blocks 0 and 3; block 2 turns here, where nobody but its origin can help.
  EXPECT_EQ(sent(ERAR_REQUEST), 4U);
  for (const erar_frame& frame : sent_) EXPECT_NE(ERAR_BE16(frame.block), 2);
  ASSERT_TRUE(look(20 * kMillisecond_ns + 1));
  EXPECT_TRUE(sent_.empty()) << "the same again at once";
  EXPECT_EQ(rank_.counter(ERAR_COUNT_LOST), 20U);
}

TEST_F(Watch, AsksForAllThatWerePassed) {
  start(kSegments);
  ASSERT_TRUE(look(kMillisecond_ns));
  // Segment 12 of block 0 came, and 0 to 11 did not.
  rank_.memory().states[12] = erar_state_of(ERAR_FIRST_OPERATION, ERAR_FINAL);
  ASSERT_TRUE(look(20 * kMillisecond_ns));
  std::size_t of_block_0 = 0;
  for (const erar_frame& frame : sent_)
    of_block_0 += frame.type == ERAR_REQUEST && ERAR_BE16(frame.block) == 0;
  EXPECT_GE(of_block_0, 6U) << "as many as a look may send after the own 16";
}

TEST_F(Watch, ShowsThatItIsThereAndGivesUpInTime) {
  start(4);
  std::size_t signs = 0;
  std::uint64_t at_ns = 1;
  Result<void> looked;
  for (; at_ns <= 2 * kTimeout_ns && (looked = look(at_ns)); at_ns += kMillisecond_ns)
    signs += sent(ERAR_ALIVE);
  EXPECT_FALSE(looked);
  EXPECT_NEAR(static_cast<double>(at_ns), static_cast<double>(kTimeout_ns), 2e6);
  EXPECT_GE(signs, 14U);
  EXPECT_EQ(looked.error().code, ETIMEDOUT);
  EXPECT_EQ(looked.error().message(),
            "operation 8 stopped at 0 of 4 segments: rank 0 is silent, or this rank is cut off: "
            "Connection timed out")
      << "which rank says so is for whoever has the errors of several to say";
}

struct Heard {
  std::string name;
  std::vector<unsigned> lately;
  std::vector<unsigned> before;  // in this stall, but not lately
  std::string verdict;
};

class RollCalls : public testing::TestWithParam<Heard> {};

// Rank 1 of four is asked; its predecessor is rank 0, before that 3 and 2.
TEST_P(RollCalls, NameTheCulprit) {
  sim::MemoryRank rank(sim::memory_ring_config(1, 4, 576, 8, 1));
  RollCall roll_call(rank.memory());
  for (const unsigned who : GetParam().before) rank.memory().heard[who]++;
  roll_call.look(200);
  for (const unsigned who : GetParam().lately) rank.memory().heard[who]++;
  roll_call.look(900);
  EXPECT_EQ(roll_call.verdict(100, 1000, 500), GetParam().verdict);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RollCalls,
    testing::Values(Heard{"stopped", {0, 2, 1}, {}, "rank 3 is silent"},
                    Heard{"predecessor", {2, 3, 1}, {}, "rank 0 is silent"},
                    Heard{"ring_cut_behind_3", {0}, {}, "rank 3 is silent"},
                    Heard{"others_left", {}, {0, 3}, "rank 2 is silent"},
                    Heard{"all_left", {}, {0, 2, 3}, "rank 0 is silent"},
                    Heard{"nobody", {}, {}, "rank 0 is silent, or this rank is cut off"},
                    Heard{"own_lost",
                          {0, 2, 3},
                          {},
                          "what this rank sends to rank 2 does not come round the ring"},
                    Heard{
                        "all_there", {0, 1, 2, 3}, {}, "all ranks are there, but frames are lost"}),
    [](const testing::TestParamInfo<Heard>& heard) { return heard.param.name; });

}  // namespace
}  // namespace erar
