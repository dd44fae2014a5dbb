// Group plans and the arena: cuts that all ranks agree on, ranges that may be aggregated in place.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "bpf/host/arena.h"
#include "bpf/host/group_plan.h"
#include "core/protocol/wire.h"

namespace erar {
namespace {

TEST(GroupPlan, CoversTheBufferInWholeSegmentsAndExponentBlocks) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; i++) {
    const std::size_t segment_bytes = 64 * (1 + random() % 51);
    const std::size_t target = std::size_t{1} << (12 + random() % 12);
    const std::size_t bytes = 1 + random() % (std::size_t{1} << (2 + random() % 32));
    SCOPED_TRACE(testing::Message()
                 << bytes << " bytes, target " << target << ", segments of " << segment_bytes);
    const GroupPlan plan = GroupPlan::of(bytes, target, segment_bytes);
    ASSERT_GE(plan.groups, 1U);
    ASSERT_EQ(plan.group_bytes % segment_bytes, 0U);
    ASSERT_EQ(plan.group_bytes % (numeric::kExponentBlock * sizeof(float)), 0U);
    ASSERT_GE(plan.groups * plan.group_bytes, bytes);
    ASSERT_LT((plan.groups - 1) * plan.group_bytes, bytes);
    ASSERT_LE(std::min(bytes, plan.group_bytes), GroupPlan::max_group_bytes(target, segment_bytes));
  }
}

TEST(GroupPlan, ABufferOfLessThanTwoGroupsIsOne) {
  EXPECT_EQ(GroupPlan::of(1 << 20, 1 << 20, 3264).groups, 1U);
  EXPECT_EQ(GroupPlan::of((2 << 20) - 1, 1 << 20, 3264).groups, 1U);
  EXPECT_EQ(GroupPlan::of(4, 1 << 20, 3264).groups, 1U);
}

TEST(GroupPlan, CountsBeyond32BitsAreCut) {
  const std::size_t bytes = std::size_t{5} << 32;
  const GroupPlan plan = GroupPlan::of(bytes, 1 << 20, 3264);
  EXPECT_GE(plan.groups * plan.group_bytes, bytes);
  EXPECT_LT(plan.group_bytes, std::size_t{2} << 20);
}

class ArenaTest : public testing::Test {
 protected:
  std::vector<std::byte> memory_ = std::vector<std::byte>(10 * 128);
  Arena arena_{memory_, 128};
};

TEST_F(ArenaTest, HandsOutWholeSegmentsUntilNoneIsLeft) {
  const auto first = arena_.allocate(1);
  const auto second = arena_.allocate(129);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->first_segment, 0U);
  EXPECT_EQ(first->segments, 1U);
  EXPECT_EQ(second->first_segment, 1U);
  EXPECT_EQ(second->segments, 2U);
  EXPECT_EQ(arena_.memory(*second).size(), 129U);
  EXPECT_FALSE(arena_.allocate(7 * 128 + 1));
  EXPECT_EQ(arena_.allocate(7 * 128 + 1).error().code, ENOMEM);
  EXPECT_TRUE(arena_.allocate(7 * 128));
  EXPECT_FALSE(arena_.allocate(1));
  EXPECT_TRUE(arena_.allocate(0));
}

TEST_F(ArenaTest, FindsWhatMayBeSummedInPlace) {
  ASSERT_TRUE(arena_.allocate(128));
  const auto range = arena_.allocate(300);
  ASSERT_TRUE(range);
  const std::byte* start = arena_.memory(*range).data();
  const auto whole = arena_.find(start, 300);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->first_segment, 1U);
  EXPECT_EQ(whole->segments, 3U);
  EXPECT_TRUE(arena_.find(start, 128));        // whole chunks
  EXPECT_TRUE(arena_.find(start + 128, 172));  // from a segment to the end
  EXPECT_FALSE(arena_.find(start, 100));       // the chunk's other elements would be summed too
  EXPECT_FALSE(arena_.find(start + 64, 64));   // not at a segment
  EXPECT_FALSE(arena_.find(start, 301));       // beyond the allocation
  EXPECT_FALSE(arena_.find(start + 384, 64));  // behind it, not handed out
  EXPECT_FALSE(arena_.find(memory_.data() + memory_.size(), 64));
  const std::vector<std::byte> elsewhere(128);
  EXPECT_FALSE(arena_.find(elsewhere.data(), 128));
}

}  // namespace
}  // namespace erar
