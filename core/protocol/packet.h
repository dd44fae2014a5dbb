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
  __u64 checksum;
};

#endif
