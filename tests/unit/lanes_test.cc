// Lane arithmetic: each way to combine, against the plain loop over lanes.
#include "core/protocol/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr __u32 kMaxChunks = ERAR_MAX_CHUNKS;

template <class Lane, class Combine>
void check_against_plain_loop(__u32 way, Lane mask, Combine combine) {
  std::mt19937_64 random(7);
  for (__u32 chunks : {1U, 2U, 21U, 22U, kMaxChunks}) {
    std::vector<__u64> to(chunks * 8), from(chunks * 8), expected(chunks * 8);
    for (auto* words : {&to, &from}) {
      auto* lanes = reinterpret_cast<Lane*>(words->data());
      for (std::size_t i = 0; i < words->size() * 8 / sizeof(Lane); i++) {
        Lane value = static_cast<Lane>(random() & mask);
        std::memcpy(lanes + i, &value, sizeof(value));
      }
    }
    for (std::size_t i = 0; i < chunks * 64 / sizeof(Lane); i++) {
      Lane a, b;
      std::memcpy(&a, reinterpret_cast<char*>(to.data()) + i * sizeof(Lane), sizeof(Lane));
      std::memcpy(&b, reinterpret_cast<char*>(from.data()) + i * sizeof(Lane), sizeof(Lane));
      const Lane sum = combine(a, b);
      std::memcpy(reinterpret_cast<char*>(expected.data()) + i * sizeof(Lane), &sum, sizeof(Lane));
    }
    auto* start = reinterpret_cast<__u8*>(to.data());
    EXPECT_EQ(erar_combine_payload(way, start, start + to.size() * 8,
                                   reinterpret_cast<const __u8*>(from.data()), chunks, kMaxChunks),
              chunks);
    EXPECT_EQ(to, expected) << "way " << way << ", " << chunks << " chunks";
  }
}

TEST(Lanes, AddWordsIsUnsigned64) {
  check_against_plain_loop<__u64>(ERAR_ADD_WORDS, ~0ULL, [](__u64 a, __u64 b) { return a + b; });
}

TEST(Lanes, AddLanes32WrapsEachLaneForItself) {
  check_against_plain_loop<__u32>(ERAR_ADD_LANES32, ~0U, [](__u32 a, __u32 b) { return a + b; });
}

TEST(Lanes, MaxLanes16OfValuesBelowTwoToThe15) {
  check_against_plain_loop<__u16>(ERAR_MAX_LANES16, 0x7fff,
                                  [](__u16 a, __u16 b) { return std::max(a, b); });
}

TEST(Lanes, StopsAtTheEndOfAShortPacketAndSaysSo) {
  std::vector<__u64> to(16, 1), from(16, 1);
  auto* start = reinterpret_cast<__u8*>(to.data());
  EXPECT_EQ(erar_combine_payload(ERAR_ADD_WORDS, start, start + 127,
                                 reinterpret_cast<const __u8*>(from.data()), 2, kMaxChunks),
            1U);
  EXPECT_EQ(to[7], 2U);
  EXPECT_EQ(to[8], 1U);
}

TEST(Lanes, AnUnknownWayChangesNothingAndSaysSo) {
  std::vector<__u64> to(8, 1), from(8, 1);
  auto* start = reinterpret_cast<__u8*>(to.data());
  EXPECT_EQ(erar_combine_payload(99, start, start + 64, reinterpret_cast<const __u8*>(from.data()),
                                 1, kMaxChunks),
            0U);
  EXPECT_EQ(to[0], 1U);
}

}  // namespace
