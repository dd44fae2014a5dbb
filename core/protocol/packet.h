// The frame in hand, parsed: what the hooks of the packet step may ask of it.
#ifndef ERAR_PROTOCOL_PACKET_H
#define ERAR_PROTOCOL_PACKET_H

#include "base.h"

// What the step knows of the frame in hand, in host byte order.
struct erar_packet {
  __u32 type;
  __u32 hop;
  __u32 block;
  __u32 segment;
  __u32 operation;
  __u32 payload_bytes;
  __u64 checksum;  // the payload's part of the frame's
};

// What a frame's checksum holds besides the sum of its payload's words: any change in one of the two words
// is seen, because multiplication by an odd number loses nothing. Changes in several words may cancel each
// other, by one chance in 2^64.
ERAR_INLINE __u64 erar_header_sum(const struct erar_packet *packet) {
  __u64 place = (__u64)packet->operation << 32 | packet->segment;
  __u64 way = (__u64)packet->type << 48 | (__u64)packet->hop << 40 | (__u64)packet->block << 16 |
              packet->payload_bytes;

  return place * 0x9e3779b97f4a7c15ULL + way * 0xc2b2ae3d27d4eb4fULL;
}

#endif
