// Ring configuration: what an endpoint turns into on the wire, and which endpoints are refused.
#include "core/session/ring_config.h"

#include <gtest/gtest.h>

#include <cstring>

namespace erar {
namespace {

RingEndpoint endpoint(unsigned rank, unsigned ranks, unsigned mtu) {
  RingEndpoint made;
  made.rank = rank;
  made.ranks = ranks;
  made.mtu = mtu;
  made.source_mac = {2, 0, 0, 0, 1, 7};
  made.next_mac = {2, 0, 0, 0, 2, 8};
  made.source_ipv4 = 0x0a4e0001;
  made.next_ipv4 = 0xfffefdfc;
  return made;
}

// RFC 1071 the plain way: a header with a right checksum sums to 0xffff.
std::uint32_t ones_complement_sum(const std::uint8_t* bytes, std::size_t length) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < length; i += 2)
    sum += static_cast<std::uint32_t>(bytes[i]) << 8 | bytes[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

TEST(RingConfig, SegmentFollowsTheMtu) {
  EXPECT_EQ(erar_segment_bytes(1500), 1408U);
  EXPECT_EQ(erar_segment_bytes(3498), 3264U);
  EXPECT_EQ(erar_segment_bytes(9000), 3264U);  // the largest live frame, not the MTU, is the limit
  EXPECT_EQ(erar_segment_bytes(122), 64U);
  EXPECT_EQ(erar_segment_bytes(121), 0U);
  for (unsigned mtu = 122; mtu < 4000; mtu++) {
    EXPECT_EQ(erar_segment_bytes(mtu) % ERAR_CHUNK_BYTES, 0U);
    EXPECT_LE(erar_segment_bytes(mtu) + ERAR_HEADER_BYTES, mtu + ERAR_LINK_HEADER_BYTES);
    EXPECT_LE(erar_segment_bytes(mtu) + ERAR_HEADER_BYTES, unsigned{ERAR_MAX_FRAME_BYTES});
  }
}

TEST(RingConfig, LinkHeadersAreValidIpv4) {
  const auto config = make_ring_config(endpoint(1, 4, 3498), 10, 9, 0x1234);
  ASSERT_TRUE(config);
  std::uint8_t bytes[40];
  std::memcpy(bytes, config->link, sizeof(bytes));
  EXPECT_EQ(ones_complement_sum(bytes + 14, 20), 0xffffU);
  EXPECT_EQ(bytes[12] << 8 | bytes[13], 0x0800);
  EXPECT_EQ(bytes[16] << 8 | bytes[17], 3264 + 58);
  EXPECT_EQ(bytes[36] << 8 | bytes[37], ERAR_UDP_PORT);
  EXPECT_EQ(bytes[38] << 8 | bytes[39], 3264 + 38);
  EXPECT_EQ(bytes[26], 0x0a);
  EXPECT_EQ(bytes[30], 0xff);
}

TEST(RingConfig, RefusesWhatIsNoRing) {
  EXPECT_FALSE(make_ring_config(endpoint(0, 1, 1500), 1, 1, 0));
  EXPECT_FALSE(make_ring_config(endpoint(0, 65, 1500), 1, 1, 0));
  EXPECT_FALSE(make_ring_config(endpoint(4, 4, 1500), 1, 1, 0));
  EXPECT_FALSE(make_ring_config(endpoint(0, 4, 100), 1, 1, 0));
  EXPECT_FALSE(make_ring_config(endpoint(0, 4, 1500), 0, 1, 0));
  for (const unsigned window : {1U, 129U}) {
    RingEndpoint odd = endpoint(0, 4, 1500);
    odd.window = window;
    EXPECT_EQ(make_ring_config(odd, 1, 1, 0).error().message(),
              "window of " + std::to_string(window) + " frames: must be 2 to 128");
  }
  const auto refused = make_ring_config(endpoint(0, 65, 1500), 1, 1, 0);
  EXPECT_EQ(refused.error().message(), "ranks 65: a ring has 2 to 64");
}

}  // namespace
}  // namespace erar
