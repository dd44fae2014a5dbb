// The packet step over whole rings in memory: every rank, hop, segment count and order of arrival.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "sim/ring/memory_ring.h"
#include "tests/fixtures/frame_fixtures.h"

namespace erar::sim {
namespace {

// Word w of a rank's share of segment s; cheap to recompute, different everywhere.
std::uint64_t share_word(unsigned rank, std::uint32_t operation, std::uint32_t segment,
                         std::uint32_t word) {
  std::uint64_t mixed = (std::uint64_t{rank} << 48) ^ (std::uint64_t{operation} << 32) ^
                        (std::uint64_t{segment} << 12) ^ word;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

class RingCheck {
 public:
  explicit RingCheck(const MemoryRingOptions& options) : ring(options) {}

  void fill(unsigned rank, const erar_start& start) {
    for (std::uint32_t segment = 0; segment < start.segments; segment++) {
      auto* words = words_of(rank, start, segment);
      const std::uint32_t bytes = bytes_of(rank, start, segment);
      for (std::uint32_t i = 0; i < bytes / 8; i++)
        words[i] = share_word(rank, start.number, segment, i);
    }
  }

  void fill_and_start(unsigned rank, const erar_start& start) {
    fill(rank, start);
    ring.start(rank, start);
  }

  void expect_sums(const erar_start& start) {
    for (unsigned rank = 0; rank < ring.ranks(); rank++) {
      ASSERT_TRUE(ring.rank(rank).done(start.number)) << "rank " << rank;
      for (std::uint32_t segment = 0; segment < start.segments; segment++) {
        const auto* words = words_of(rank, start, segment);
        for (std::uint32_t i = 0; i < bytes_of(rank, start, segment) / 8; i++)
          ASSERT_EQ(words[i], sum_word(start, segment, i))
              << "rank " << rank << " segment " << segment << " word " << i;
      }
    }
  }

  MemoryRing ring;

 private:
  std::uint64_t sum_word(const erar_start& start, std::uint32_t segment, std::uint32_t word) {
    std::uint64_t sum = 0;
    for (unsigned rank = 0; rank < ring.ranks(); rank++) {
      const std::uint64_t share = share_word(rank, start.number, segment, word);
      if (start.combine.loop == ERAR_ADD_WORDS) {
        sum += share;
      } else {
        const std::uint32_t low =
            static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(share);
        const std::uint32_t high =
            static_cast<std::uint32_t>(sum >> 32) + static_cast<std::uint32_t>(share >> 32);
        sum = std::uint64_t{high} << 32 | low;
      }
    }
    return sum;
  }
  std::uint64_t* words_of(unsigned rank, const erar_start& start, std::uint32_t segment) {
    return reinterpret_cast<std::uint64_t*>(ring.rank(rank).segment(start.first_segment + segment));
  }
  std::uint32_t bytes_of(unsigned rank, const erar_start& start, std::uint32_t segment) {
    return segment + 1 == start.segments ? start.last_bytes
                                         : ring.rank(rank).config().segment_bytes;
  }
};

erar_start operation(std::uint32_t number, std::uint32_t first, std::uint32_t segments,
                     std::uint32_t last_bytes = 1408, std::uint32_t loop = ERAR_ADD_WORDS) {
  erar_start start{};
  start.number = number;
  start.first_segment = first;
  start.segments = segments;
  start.last_bytes = last_bytes;
  start.combine.loop = loop;
  start.check = 1;
  return start;
}

std::vector<std::uint32_t> segment_counts(unsigned ranks) {
  const std::uint32_t window = erar_window(ranks);
  std::vector<std::uint32_t> counts = {1,
                                       2,
                                       ranks - 1,
                                       ranks,
                                       ranks + 1,
                                       3 * ranks,
                                       window * ranks,
                                       window * ranks + 1,
                                       window * ranks * 2 + 5};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

class StepOverRanks : public testing::TestWithParam<unsigned> {};

TEST_P(StepOverRanks, EverySegmentCountGivesExactSumsOnEveryRank) {
  const unsigned ranks = GetParam();
  for (const std::uint32_t segments : segment_counts(ranks)) {
    for (const std::uint32_t loop : {ERAR_ADD_WORDS, ERAR_ADD_LANES32}) {
      SCOPED_TRACE(testing::Message() << segments << " segments, loop " << loop);
      RingCheck check({.ranks = ranks, .arena_segments = segments});
      const auto start = operation(ERAR_FIRST_OPERATION, 0, segments, 192, loop);
      for (unsigned rank = 0; rank < ranks; rank++) check.fill_and_start(rank, start);
      check.ring.deliver_all();
      check.expect_sums(start);
    }
  }
}

TEST_P(StepOverRanks, CountersTellWhatTheProtocolPromises) {
  const unsigned ranks = GetParam();
  const std::uint32_t segments = 2 * ranks * erar_window(ranks) + 3;
  RingCheck check({.ranks = ranks, .arena_segments = segments});
  const auto start = operation(ERAR_FIRST_OPERATION, 0, segments);
  for (unsigned rank = 0; rank < ranks; rank++) check.fill_and_start(rank, start);
  check.ring.deliver_all();
  std::uint64_t adds = 0, stored = 0, recycled = 0, retired = 0, kicks = 0, unparked = 0;
  for (unsigned i = 0; i < ranks; i++) {
    MemoryRank& rank = check.ring.rank(i);
    EXPECT_EQ(rank.completions(), 1U);
    EXPECT_EQ(rank.counter(ERAR_COUNT_STORED), segments);
    for (int drop = ERAR_DROP_SHORT; drop < ERAR_COUNTERS; drop++)
      EXPECT_EQ(rank.counter(static_cast<erar_counter>(drop)), 0U) << "counter " << drop;
    adds += rank.counter(ERAR_COUNT_ADDS);
    stored += rank.counter(ERAR_COUNT_STORED);
    recycled += rank.counter(ERAR_COUNT_RECYCLED);
    retired += rank.counter(ERAR_COUNT_RETIRED);
    kicks += rank.counter(ERAR_COUNT_KICKS);
    unparked += rank.counter(ERAR_COUNT_UNPARKED);
  }
  EXPECT_EQ(adds, std::uint64_t{segments} * (ranks - 1));
  EXPECT_EQ(stored, std::uint64_t{segments} * ranks);
  // Every frame was injected once, carried segments one after the other, and was retired once.
  EXPECT_EQ(kicks - unparked + recycled, segments);
  EXPECT_EQ(retired, kicks - unparked);
  EXPECT_EQ(check.ring.frames_under_way(), 0U);
  EXPECT_LE(check.ring.most_frames_on_a_link(), std::size_t{ranks * erar_window(ranks)});
}

TEST_P(StepOverRanks, AnyStartOrderAndAnyDeliveryOrder) {
  const unsigned ranks = GetParam();
  for (std::uint64_t seed = 1; seed <= (ranks > 9 ? 4 : 40); seed++) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto segments =
        static_cast<std::uint32_t>(1 + random() % (3 * ranks * erar_window(ranks)));
    RingCheck check({.ranks = ranks, .arena_segments = segments, .seed = seed, .reorder = true});
    const auto start = operation(ERAR_FIRST_OPERATION, 0, segments,
                                 static_cast<std::uint32_t>(64 * (1 + random() % 22)));
    std::vector<unsigned> order(ranks);
    for (unsigned i = 0; i < ranks; i++) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const unsigned rank : order) {
      for (std::uint64_t i = random() % 200; i > 0; i--) check.ring.deliver_one();
      check.fill_and_start(rank, start);
    }
    check.ring.deliver_all();
    check.expect_sums(start);
  }
}

TEST_P(StepOverRanks, SeveralOperationsInFlightAndSlotsReused) {
  const unsigned ranks = GetParam();
  constexpr std::uint32_t kOperations = 3 * ERAR_SLOTS;
  constexpr std::uint32_t kSegments = 11;
  std::mt19937_64 random(ranks);
  RingCheck check({.ranks = ranks, .arena_segments = kOperations * kSegments, .reorder = true});
  const auto start_of = [](std::uint32_t index) {
    return operation(ERAR_FIRST_OPERATION + index, index * kSegments, kSegments);
  };
  std::vector<std::uint32_t> next(ranks);
  // Each rank starts its next operation at a random moment, once the slot's last one is done on it.
  while (std::any_of(next.begin(), next.end(), [](auto n) { return n < kOperations; })) {
    const auto rank = static_cast<unsigned>(random() % ranks);
    const std::uint32_t index = next[rank];
    const bool free =
        index < ERAR_SLOTS || check.ring.rank(rank).done(ERAR_FIRST_OPERATION + index - ERAR_SLOTS);
    if (index < kOperations && free) {
      check.fill_and_start(rank, start_of(index));
      next[rank]++;
    }
    for (std::uint64_t i = random() % 8; i > 0; i--) check.ring.deliver_one();
  }
  check.ring.deliver_all();
  for (std::uint32_t index = kOperations - ERAR_SLOTS; index < kOperations; index++)
    check.expect_sums(start_of(index));
}

INSTANTIATE_TEST_SUITE_P(Rings, StepOverRanks, testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 64));

// Rank 1 of 4 as the fixtures want it.
std::unique_ptr<MemoryRank> fixture_rank() {
  MemoryRing ring({.ranks = tests::kFixtureRanks,
                   .mtu = tests::kFixtureMtu,
                   .arena_segments = tests::kFixtureSegments});
  auto rank = std::make_unique<MemoryRank>(ring.rank(1).config());
  for (std::uint32_t segment = 0; segment < tests::kFixtureSegments; segment++)
    for (std::uint32_t i = 0; i < 1408; i++)
      rank->segment(segment)[i] = tests::fixture_share(segment, i);
  rank->start(tests::fixture_start());
  return rank;
}

class StepOnFixtures : public testing::TestWithParam<tests::FrameFixture> {};

TEST_P(StepOnFixtures, VerdictAndReason) {
  const auto rank = fixture_rank();
  Frame frame = tests::fixture_frame();
  GetParam().change(frame);
  EXPECT_EQ(rank->receive(frame), GetParam().verdict);
  EXPECT_EQ(rank->counter(GetParam().counter), 1U);
  EXPECT_EQ(rank->counter(ERAR_COUNT_ADDS), GetParam().verdict == Verdict::kForward ? 1U : 0U);
}

INSTANTIATE_TEST_SUITE_P(Frames, StepOnFixtures, testing::ValuesIn(tests::frame_fixtures()),
                         [](const auto& fixture) { return fixture.param.name; });

TEST(Step, AFrameWithoutAByteIsForeign) {
  Frame empty;
  EXPECT_EQ(fixture_rank()->receive(empty), Verdict::kPass);
}

TEST(Step, ANextOperationsFrameIsParkedAndResumed) {
  const auto rank = fixture_rank();
  erar_start next = tests::fixture_start();
  next.number += ERAR_SLOTS;
  Frame frame = tests::fixture_frame();
  reinterpret_cast<erar_frame*>(frame.data())->operation = ERAR_BE32(next.number);
  tests::seal(frame);
  EXPECT_EQ(rank->receive(frame), Verdict::kDrop);
  EXPECT_EQ(rank->start(next), 3U);  // the parked frame and two segments of the own block
  Frame resumed;
  EXPECT_EQ(rank->kick(next.number, resumed), Verdict::kForward);
  const auto* sent = reinterpret_cast<const erar_frame*>(resumed.data());
  EXPECT_EQ(sent->block, 0);
  EXPECT_EQ(sent->hop, 2);
  EXPECT_EQ(rank->counter(ERAR_COUNT_UNPARKED), 1U);
}

// Block 0 turns at rank 1: what comes again is answered with the sum, whose frame may have been
// lost.
TEST(Step, ADuplicateAtTheTurnIsNotStoredAgainButAnswered) {
  MemoryRing ring({.ranks = 2, .arena_segments = 2});
  const auto start = operation(ERAR_FIRST_OPERATION, 0, 2);
  ring.rank(0).start(start);
  ring.rank(1).start(start);
  Frame frame, copy;
  ASSERT_EQ(ring.rank(0).kick(start.number, frame), Verdict::kForward);
  copy = frame;
  EXPECT_EQ(ring.rank(1).receive(frame), Verdict::kForward);
  EXPECT_EQ(ring.rank(1).receive(copy), Verdict::kForward);
  EXPECT_EQ(copy, frame);
  EXPECT_EQ(ring.rank(1).counter(ERAR_COUNT_ANSWERED), 1U);
  EXPECT_EQ(ring.rank(1).counter(ERAR_COUNT_STORED), 1U);
}

}  // namespace
}  // namespace erar::sim
