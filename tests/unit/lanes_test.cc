// Lane arithmetic: each way to combine, against the plain loop over lanes.
#include "core/protocol/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr __u32 kMaxChunks = ERAR_MAX_CHUNKS;

erar_combine way(std::uint32_t loop, std::uint64_t high = 0, std::uint64_t flip = 0) {
  const std::uint16_t shift = high == ERAR_HIGH_OF_LANES8    ? 7
                              : high == ERAR_HIGH_OF_LANES16 ? 15
                              : high == ERAR_HIGH_OF_LANES32 ? 31
                                                             : 63;
  return erar_combine{loop, 0, shift, high, flip};
}

template <class Lane>
std::uint64_t sum_of_words(const std::vector<Lane>& lanes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < lanes.size() * sizeof(Lane) / 8; i++) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(lanes.data()) + 8 * i, 8);
    sum += word;
  }
  return sum;
}

// The loop of the common ways: the same lanes, and what it says of their sums.
template <class Lane>
void check_common(std::uint32_t loop, std::vector<Lane> to, const std::vector<Lane>& from,
                  const std::vector<Lane>& expected, std::uint32_t chunks) {
  const std::uint64_t before = sum_of_words(to);
  auto* start = reinterpret_cast<__u8*>(to.data());
  erar_sums sums;
  EXPECT_EQ(
      erar_combine_common(loop, start, start + chunks * 64,
                          reinterpret_cast<const __u8*>(from.data()), chunks, kMaxChunks, &sums),
      chunks);
  EXPECT_EQ(to, expected);
  EXPECT_EQ(sums.came, before);
  EXPECT_EQ(before + sums.added, sum_of_words(expected));
  EXPECT_EQ(erar_sum_words(start, start + chunks * 64, chunks, kMaxChunks), sum_of_words(to));
  if (loop == ERAR_ADD_WORDS) {
    EXPECT_EQ(sums.added, sum_of_words(from));
  }
}

template <class Lane, class Combine>
void check_against_plain_loop(const erar_combine& how, Combine combine) {
  std::mt19937_64 random(7);
  for (__u32 chunks : {1U, 2U, 21U, 22U, kMaxChunks}) {
    const std::size_t lanes = chunks * 64 / sizeof(Lane);
    std::vector<Lane> to(lanes), from(lanes), expected(lanes);
    for (std::size_t i = 0; i < lanes; i++) {
      to[i] = static_cast<Lane>(random());
      // Equal lanes, and lanes that differ in the lowest or the highest bit only, now and then.
      const auto top = static_cast<Lane>(Lane{1} << (8 * sizeof(Lane) - 1));
      const Lane near[] = {to[i], static_cast<Lane>(to[i] ^ 1), static_cast<Lane>(to[i] ^ top)};
      from[i] = random() % 4 == 0 ? near[random() % 3] : static_cast<Lane>(random());
      expected[i] = static_cast<Lane>(combine(to[i], from[i]));
    }
    const std::vector<Lane> before = to;
    auto* start = reinterpret_cast<__u8*>(to.data());
    EXPECT_EQ(erar_combine_payload(&how, start, start + chunks * 64,
                                   reinterpret_cast<const __u8*>(from.data()), chunks, kMaxChunks),
              chunks);
    EXPECT_EQ(to, expected) << "loop " << how.loop << ", " << chunks << " chunks";
    if (erar_is_common(&how)) check_common(how.loop, before, from, expected, chunks);
  }
}

const auto kPlus = [](auto a, auto b) { return a + b; };
const auto kMost = [](auto a, auto b) { return std::max(a, b); };
const auto kLeast = [](auto a, auto b) { return std::min(a, b); };

TEST(Lanes, AddWordsIsUnsigned64) { check_against_plain_loop<__u64>(way(ERAR_ADD_WORDS), kPlus); }

TEST(Lanes, AddLanesWrapsEachLaneForItself) {
  check_against_plain_loop<__u32>(way(ERAR_ADD_LANES32), kPlus);
  check_against_plain_loop<__u8>(way(ERAR_ADD_LANES, ERAR_HIGH_OF_LANES8), kPlus);
  check_against_plain_loop<__u16>(way(ERAR_ADD_LANES, ERAR_HIGH_OF_LANES16), kPlus);
  check_against_plain_loop<__u32>(way(ERAR_ADD_LANES, ERAR_HIGH_OF_LANES32), kPlus);
  check_against_plain_loop<__u64>(way(ERAR_ADD_LANES, ERAR_HIGH_OF_LANES64), kPlus);
}

template <class Unsigned, class Signed>
void check_extremes(std::uint64_t high) {
  check_against_plain_loop<Unsigned>(way(ERAR_MAX_LANES, high), kMost);
  check_against_plain_loop<Unsigned>(way(ERAR_MAX_LANES, high, ~0ULL), kLeast);
  check_against_plain_loop<Signed>(way(ERAR_MAX_LANES, high, high), kMost);
  check_against_plain_loop<Signed>(way(ERAR_MAX_LANES, high, ~high), kLeast);
}

TEST(Lanes, MaximaAndMinimaOfSignedAndUnsignedLanes) {
  check_extremes<std::uint8_t, std::int8_t>(ERAR_HIGH_OF_LANES8);
  check_extremes<std::uint16_t, std::int16_t>(ERAR_HIGH_OF_LANES16);
  check_extremes<std::uint32_t, std::int32_t>(ERAR_HIGH_OF_LANES32);
  check_extremes<std::uint64_t, std::int64_t>(ERAR_HIGH_OF_LANES64);
}

TEST(Lanes, AWordChunkIsAddedWhateverTheLoop) {
  erar_combine how = way(ERAR_MAX_LANES, ERAR_HIGH_OF_LANES64);
  how.word_chunks = 1;
  std::vector<__u64> to(24, 5), from(24, 3);
  auto* start = reinterpret_cast<__u8*>(to.data());
  EXPECT_EQ(erar_combine_payload(&how, start, start + 192,
                                 reinterpret_cast<const __u8*>(from.data()), 3, kMaxChunks),
            3U);
  for (std::size_t i = 0; i < to.size(); i++) EXPECT_EQ(to[i], i < 8 ? 8U : 5U);
}

TEST(Lanes, StopsAtTheEndOfAShortPacketAndSaysSo) {
  std::vector<__u64> to(16, 1), from(16, 1);
  auto* start = reinterpret_cast<__u8*>(to.data());
  const erar_combine how = way(ERAR_ADD_WORDS);
  EXPECT_EQ(erar_combine_payload(&how, start, start + 127,
                                 reinterpret_cast<const __u8*>(from.data()), 2, kMaxChunks),
            1U);
  EXPECT_EQ(to[7], 2U);
  EXPECT_EQ(to[8], 1U);
}

TEST(Lanes, AnUnknownWayChangesNothingAndSaysSo) {
  std::vector<__u64> to(8, 1), from(8, 1);
  auto* start = reinterpret_cast<__u8*>(to.data());
  const erar_combine how = way(99);
  EXPECT_EQ(erar_combine_payload(&how, start, start + 64,
                                 reinterpret_cast<const __u8*>(from.data()), 1, kMaxChunks),
            0U);
  EXPECT_EQ(to[0], 1U);
}

}  // namespace
