// Ring arithmetic: blocks cover the buffer, hops end where the protocol says.
#include "core/protocol/ring.h"

#include <gtest/gtest.h>

namespace {

TEST(Ring, BlocksCoverEverySegmentOnceAndDifferByOneAtMost) {
  for (__u32 ranks = 2; ranks <= ERAR_MAX_RANKS; ranks++) {
    for (__u32 segments : {1U, 2U, 3U, ranks - 1, ranks, ranks + 1, 7 * ranks - 1, 100'003U}) {
      EXPECT_EQ(erar_block_begin(segments, ranks, 0), 0U);
      EXPECT_EQ(erar_block_begin(segments, ranks, ranks), segments);
      for (__u32 block = 0; block < ranks; block++) {
        const __u32 count = erar_block_count(segments, ranks, block);
        EXPECT_GE(count, segments / ranks);
        EXPECT_LE(count, segments / ranks + 1);
      }
    }
  }
}

TEST(Ring, BlockArithmeticDoesNotOverflow) {
  const __u32 most = 0xffffffffU;
  EXPECT_EQ(erar_block_begin(most, 64, 64), most);
  EXPECT_EQ(erar_block_begin(most, 64, 63), 4227858431U);
}

TEST(Ring, AFrameVisitsEveryRankInBothPhasesAndEndsTwoBeforeItsOrigin) {
  for (__u32 ranks = 2; ranks <= ERAR_MAX_RANKS; ranks++) {
    for (__u32 block = 0; block < ranks; block++) {
      __u64 reduced_at = 1ULL << block, stored_at = 0;
      for (__u32 hop = 1; hop <= erar_last_hop(ranks); hop++) {
        const __u32 rank = erar_receiver(block, hop, ranks);
        ASSERT_EQ(rank, (block + hop) % ranks);
        if (hop <= erar_turn_hop(ranks)) reduced_at |= 1ULL << rank;
        if (hop >= erar_turn_hop(ranks)) stored_at |= 1ULL << rank;
      }
      const __u64 everyone = ranks == 64 ? ~0ULL : (1ULL << ranks) - 1;
      EXPECT_EQ(reduced_at, everyone);
      EXPECT_EQ(stored_at, everyone);
      EXPECT_EQ(erar_receiver(block, erar_last_hop(ranks), ranks), (block + ranks - 2) % ranks);
    }
  }
}

TEST(Ring, WindowsOfTwoOperationsFitOneVethQueue) {
  for (__u32 ranks = 2; ranks <= ERAR_MAX_RANKS; ranks++) {
    EXPECT_GE(erar_window(ranks), 1U);
    EXPECT_LE(2 * ranks * erar_window(ranks), 256U);
  }
}

}  // namespace
