// Group plans and the arena: cuts that all ranks agree on, ranges that may be aggregated in place.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/collective/arena.h"
#include "core/collective/group_plan.h"
#include "core/protocol/wire.h"

namespace erar {
namespace {

TEST(GroupPlan, CoversTheBufferInWholeSegmentsAndGranules) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; i++) {
    const std::size_t segment_bytes = 64 * (1 + random() % 51);
    const std::size_t target = std::size_t{1} << (12 + random() % 12);
    const std::size_t count = 1 + random() % (std::size_t{1} << (1 + random() % 32));
    const bool blocks = random() % 2 == 0;
    const std::size_t lane_bytes = std::size_t{1} << (blocks ? 1 + random() % 3 : random() % 5);
    const std::size_t granule = blocks ? numeric::kExponentBlock : 1;
    SCOPED_TRACE(testing::Message() << count << " elements, lanes of " << lane_bytes << ", target "
                                    << target << ", segments of " << segment_bytes);
    const GroupPlan plan = GroupPlan::of(count, lane_bytes, granule, target, segment_bytes);
    ASSERT_GE(plan.groups, 1U);
    ASSERT_EQ(plan.group_elements * lane_bytes % segment_bytes, 0U);
    ASSERT_EQ(plan.group_elements % granule, 0U);
    ASSERT_GE(plan.groups * plan.group_elements, count);
    ASSERT_LT((plan.groups - 1) * plan.group_elements, count);
    ASSERT_LE(std::min(count, plan.group_elements) * lane_bytes,
              GroupPlan::max_group_bytes(target, segment_bytes));
  }
}

TEST(GroupPlan, ABufferOfLessThanTwoGroupsIsOne) {
  EXPECT_EQ(GroupPlan::of(1 << 18, 4, 1024, 1 << 20, 3264).groups, 1U);
  EXPECT_EQ(GroupPlan::of((2 << 18) - 1, 4, 1024, 1 << 20, 3264).groups, 1U);
  EXPECT_EQ(GroupPlan::of(1, 4, 1024, 1 << 20, 3264).groups, 1U);
  EXPECT_EQ(GroupPlan::of(0, 4, 1024, 1 << 20, 3264).groups, 0U);
}

// No memory is needed to see that sizes beyond 31 and 32 bits are cut as others are.
TEST(GroupPlan, CountsBeyond31And32BitsAreCut) {
  for (const std::size_t count :
       {(std::size_t{1} << 31) - 1, std::size_t{1} << 31, (std::size_t{1} << 31) + 1,
        (std::size_t{1} << 32) + 12'345, std::size_t{5} << 40}) {
    for (const std::size_t lane_bytes : {1UL, 2UL, 4UL, 8UL, 16UL}) {
      const GroupPlan plan = GroupPlan::of(count, lane_bytes, 1024, 1 << 20, 3264);
      ASSERT_GE(plan.groups * plan.group_elements, count);
      ASSERT_LT((plan.groups - 1) * plan.group_elements, count);
      ASSERT_LE(plan.group_elements * lane_bytes, (std::size_t{2} << 20) + 1024 * 51 * 16);
    }
  }
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
