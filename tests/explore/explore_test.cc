// Every state of small rings: with losses, duplicates, reordering, early resends, and operations
// after each other. ERAR_EXPLORE=full adds the scenarios that take minutes.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/explore/explorer.h"
#include "sim/explore/payload.h"
#include "sim/explore/ring_state.h"
#include "sim/explore/state_store.h"

namespace erar::sim {
namespace {

struct Named {
  const char* name;
  Scenario scenario;
};

std::string name_of(const testing::TestParamInfo<Named>& info) { return info.param.name; }

std::string text_of(const Exploration& found) {
  std::string text = found.violation;
  for (const std::string& line : found.trace) text += "\n  " + line;
  return text;
}

void expect_sound(const Scenario& scenario) {
  const Exploration found = explore(scenario);
  std::printf("%llu states, %llu actions tried, depth %u, farthest %u, %.1f s\n",
              static_cast<unsigned long long>(found.states),
              static_cast<unsigned long long>(found.steps), found.depth, found.farthest,
              found.seconds);
  EXPECT_TRUE(found.complete) << text_of(found);
  EXPECT_GT(found.ends, 0U);
}

class Quick : public testing::TestWithParam<Named> {};
TEST_P(Quick, EveryStateIsSoundAndLeadsToAnEnd) { expect_sound(GetParam().scenario); }

class Full : public testing::TestWithParam<Named> {};
TEST_P(Full, EveryStateIsSoundAndLeadsToAnEnd) {
  const char* wanted = std::getenv("ERAR_EXPLORE");
  if (wanted == nullptr || std::string(wanted) != "full") GTEST_SKIP() << "ERAR_EXPLORE=full";
  expect_sound(GetParam().scenario);
}

INSTANTIATE_TEST_SUITE_P(
    Rings, Quick,
    testing::Values(
        Named{"two_ranks",
              {.ranks = 2, .segments = 2, .losses = 2, .duplicates = 2, .early_resends = 1}},
        Named{"two_ranks_recycle",
              {.ranks = 2,
               .segments = 6,
               .window = 1,
               .losses = 2,
               .duplicates = 1,
               .early_resends = 1}},
        Named{"two_ranks_short_segment",
              {.ranks = 2, .segments = 5, .short_last = true, .losses = 1, .duplicates = 1}},
        Named{"two_ranks_kick_by_kick",
              {.ranks = 2, .segments = 4, .split_kicks = true, .losses = 2, .duplicates = 1}},
        Named{"two_ranks_three_operations",
              {.ranks = 2, .segments = 2, .operations = 3, .losses = 1, .duplicates = 1}},
        Named{"two_ranks_same_slot",
              {.ranks = 2,
               .segments = 2,
               .operations = 4,
               .split_kicks = true,
               .losses = 1,
               .duplicates = 1,
               .same_slot = true}},
        Named{"two_ranks_two_cpus",
              {.ranks = 2,
               .segments = 2,
               .two_cpus = true,
               .losses = 2,
               .duplicates = 1,
               .early_resends = 1}},
        Named{"two_ranks_two_cpus_recycle",
              {.ranks = 2,
               .segments = 6,
               .window = 1,
               .two_cpus = true,
               .losses = 1,
               .duplicates = 1}},
        Named{"two_ranks_two_cpus_three_operations",
              {.ranks = 2, .segments = 2, .operations = 3, .two_cpus = true, .duplicates = 1}},
        Named{"three_ranks_two_cpus",
              {.ranks = 3,
               .segments = 1,
               .two_cpus = true,
               .losses = 1,
               .duplicates = 1,
               .early_resends = 1}},
        Named{"three_ranks_one_segment",
              {.ranks = 3, .segments = 1, .losses = 2, .duplicates = 2, .early_resends = 1}},
        Named{"three_ranks_two_segments",
              {.ranks = 3, .segments = 2, .losses = 1, .duplicates = 1, .early_resends = 1}},
        Named{"three_ranks", {.ranks = 3, .segments = 3, .losses = 1}},
        Named{"three_ranks_two_operations",
              {.ranks = 3, .segments = 1, .operations = 2, .losses = 2, .duplicates = 1}},
        Named{"three_ranks_same_slot",
              {.ranks = 3,
               .segments = 1,
               .operations = 3,
               .losses = 1,
               .duplicates = 1,
               .same_slot = true}},
        Named{"four_ranks_one_segment",
              {.ranks = 4, .segments = 1, .losses = 2, .duplicates = 2, .early_resends = 1}},
        Named{"four_ranks_two_segments", {.ranks = 4, .segments = 2, .losses = 2}},
        Named{"four_ranks_two_operations",
              {.ranks = 4, .segments = 1, .operations = 2, .losses = 1, .duplicates = 1}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Rings, Full,
    testing::Values(
        Named{"two_ranks_early_resends",
              {.ranks = 2, .segments = 4, .losses = 2, .duplicates = 2, .early_resends = 2}},
        Named{"two_ranks_four_operations",
              {.ranks = 2,
               .segments = 2,
               .operations = 4,
               .losses = 2,
               .duplicates = 1,
               .early_resends = 1}},
        Named{"three_ranks", {.ranks = 3, .segments = 3, .losses = 2, .duplicates = 1}},
        Named{"three_ranks_early_resends",
              {.ranks = 3, .segments = 2, .losses = 2, .duplicates = 2, .early_resends = 1}},
        Named{"three_ranks_two_cpus",
              {.ranks = 3,
               .segments = 2,
               .short_last = true,
               .two_cpus = true,
               .losses = 1,
               .duplicates = 1}},
        Named{"three_ranks_two_operations",
              {.ranks = 3, .segments = 2, .operations = 2, .losses = 1, .duplicates = 1}},
        Named{"four_ranks_three_segments",
              {.ranks = 4, .segments = 3, .losses = 1, .duplicates = 1}},
        Named{"four_ranks", {.ranks = 4, .segments = 4, .window = 1}}),
    name_of);

// A rank that forgets an operation as soon as it is complete there leaves another without help.
// This is also the proof that termination is looked at.
TEST(Explorer, FindsTheTailLossWithoutRetention) {
  const Exploration found =
      explore({.ranks = 2, .segments = 2, .operations = 2, .losses = 1, .areas = 1});
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.violation, "no end can be reached from here");
  ASSERT_FALSE(found.trace.empty());
  EXPECT_EQ(found.trace.back(), "rank 0 takes memory for its next operation");
}

// And without closing the slot another's sum is wrong: stored, and named.
TEST(Explorer, FindsMemoryThatIsReusedTooEarly) {
  Scenario scenario{.ranks = 2, .segments = 2, .operations = 2, .losses = 1, .areas = 1};
  scenario.close_before_reuse = false;
  scenario.check_frames = false;
  const Exploration found = explore(scenario);
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.violation.rfind("a final segment is not the sum", 0), 0U) << text_of(found);
}

// A frame of operation k that comes late, while the process opens k+8, must not be laid down over one
// of k+8 that waits for its kick, checksum and all.
TEST(Explorer, LateFramesAreNotParkedAmidAnOpening) {
  expect_sound({.ranks = 2,
                .segments = 2,
                .operations = 3,
                .two_cpus = true,
                .duplicates = 1,
                .same_slot = true});
}

TEST(Explorer, VisitsAsMuchWithRotationsAsWithout) {
  Scenario scenario{.ranks = 3, .segments = 3};
  const Exploration turned = explore(scenario);
  scenario.rotations = false;
  const Exploration plain = explore(scenario);
  EXPECT_EQ(turned.depth, plain.depth);
  EXPECT_EQ(turned.farthest, plain.farthest);
  EXPECT_GE(turned.states * 3, plain.states);
  EXPECT_LT(turned.states * 2, plain.states);
}

TEST(Explorer, SaysWhenItGivesUp) {
  const Exploration found = explore({.ranks = 3, .segments = 3, .max_states = 1000});
  EXPECT_FALSE(found.complete);
  EXPECT_TRUE(found.violation.empty());
}

TEST(RingState, SurvivesItsBytes) {
  const Scenario scenario{.ranks = 3, .segments = 2, .operations = 2};
  RingState state;
  state.losses = 2;
  state.ranks[1].filled = 1;
  state.ranks[2].slots[1].own_next = 3;
  state.ranks[2].parked[4] = 1 | RankState::kClaimed;
  state.add({.type = ERAR_REPAIR, .hop = 4, .operation = 1, .segment = 1});
  state.add({.type = ERAR_REDUCE_SCATTER, .hop = 2, .wrong = true, .word = 77});
  const std::string bytes = encode(scenario, state);
  const RingState again = decode(scenario, bytes);
  EXPECT_EQ(encode(scenario, again), bytes);
  EXPECT_EQ(again.frames, state.frames);
  EXPECT_EQ(again.ranks[2].slots, state.ranks[2].slots);
  EXPECT_EQ(again.ranks[2].parked, state.ranks[2].parked);
}

TEST(RingState, TurnsRoundToItself) {
  const Scenario scenario{.ranks = 3, .segments = 6};
  RingState state;
  state.ranks[0].segments = {1, 2, 3, 4, 5, 6};
  state.ranks[1].parked[3] = 1;
  state.add({.type = ERAR_REDUCE_SCATTER, .hop = 1, .segment = 5});
  const RingState turned = rotated(scenario, state, 1);
  EXPECT_EQ(turned.frames.front().segment, 1);
  EXPECT_EQ(turned.ranks[1].segments[2], 1);
  EXPECT_EQ(encode(scenario, turned), encode(scenario, state));
  EXPECT_EQ(rotated(scenario, turned, 2).ranks[1].parked, state.ranks[1].parked);
}

TEST(StateStore, KeepsEachOnce) {
  StateStore store;
  for (unsigned round = 0; round < 2; round++)
    for (unsigned i = 0; i < 100'000; i++) {
      const auto [index, is_new] = store.insert(std::to_string(i));
      ASSERT_EQ(index, i);
      ASSERT_EQ(is_new, round == 0);
    }
  EXPECT_EQ(store.at(4711), "4711");
}

TEST(Payload, TellsWhoContributed) {
  std::array<std::uint8_t, 64> bytes{};
  write_payload(bytes.data(), bytes.size(), partial_word(1, 2, 3, 2, 4));
  std::uint64_t word = 0;
  ASSERT_TRUE(read_payload(bytes.data(), bytes.size(), word));
  EXPECT_EQ(word & 0xffffffff, 0x01000001U);
  bytes[60] ^= 1;
  EXPECT_FALSE(read_payload(bytes.data(), bytes.size(), word));
}

}  // namespace
}  // namespace erar::sim
