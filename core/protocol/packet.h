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

// What a frame's checksum stands for besides the sum of its payload's words: any change in one of the two
// words is seen, because multiplication by an odd number loses nothing. Changes in several words may cancel
// each other, by one chance in 2^64.
ERAR_INLINE __u64 erar_header_sum(const struct erar_packet *packet) {
  __u64 place = (__u64)packet->operation << 32 | packet->segment;
  __u64 way = (__u64)packet->type << 48 | (__u64)packet->hop << 40 | (__u64)packet->block << 16 |
              packet->payload_bytes;

  return place * 0x9e3779b97f4a7c15ULL + way * 0xc2b2ae3d27d4eb4fULL;
}

// The sum is scattered on the wire, one to one: a bit or two that flip there change it by what no bit or
// byte that flips in the payload makes good. Left plain, the same bit flipped in both would go unseen.
#define ERAR_SCATTER 0x9e3779b97f4a7c15ULL
#define ERAR_GATHER 0xf1de83e19937733dULL  // ERAR_SCATTER's inverse modulo 2^64
ERAR_STATIC_ASSERT(ERAR_SCATTER * ERAR_GATHER == 1, "the way back of a checksum");

// The checksum on the wire of a frame with these headers and packet->checksum.
ERAR_INLINE __u64 erar_wire_checksum(const struct erar_packet *packet) {
  __u64 product = (packet->checksum + erar_header_sum(packet)) * ERAR_SCATTER;

  return product ^ product >> 32;
}

// The payload's part of a checksum on the wire.
ERAR_INLINE __u64 erar_payload_checksum(const struct erar_packet *packet, __u64 wire) {
  return (wire ^ wire >> 32) * ERAR_GATHER - erar_header_sum(packet);
}

#endif
