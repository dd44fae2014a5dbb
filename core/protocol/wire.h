// Wire format: Ethernet + IPv4 + UDP + eRAR header, 72 bytes together, then the lanes.
//
// Every field lies at its natural alignment within the frame, so no compiler splits its loads.
// Multi-byte header fields are in network byte order (RFC 1700), lanes in little-endian order.
#ifndef ERAR_PROTOCOL_WIRE_H
#define ERAR_PROTOCOL_WIRE_H

#include "base.h"

#define ERAR_UDP_PORT 18520
#define ERAR_MAGIC 0xE7A4 /* low nibble: protocol version 4, with the checksum scattered */

#define ERAR_HEADER_BYTES 72
#define ERAR_UDP_HEADER_END 42 /* where a frame is long enough to tell whether it is ours */
#define ERAR_LINK_HEADER_BYTES 14
#define ERAR_IP_OVERHEAD_BYTES 58  /* IPv4 total length minus payload */
#define ERAR_UDP_OVERHEAD_BYTES 38 /* UDP length minus payload */

// Payload comes in chunks of one cache line; the last segment is padded to a whole chunk.
#define ERAR_CHUNK_BYTES 64
// The largest frame that a BPF live-frame test run can inject is 3360 bytes (4 KiB page less headroom
// and skb_shared_info).
#define ERAR_MAX_FRAME_BYTES 3360
#define ERAR_MAX_SEGMENT_BYTES 3264
#define ERAR_MAX_CHUNKS (ERAR_MAX_SEGMENT_BYTES / ERAR_CHUNK_BYTES)

enum erar_type {
  ERAR_KICK = 1,            // from the process only, never on a wire: start something
  ERAR_REDUCE_SCATTER = 2,  // payload is a partial sum
  ERAR_ALL_GATHER = 3,      // payload is the whole sum
  ERAR_REQUEST = 4,         // a rank lacks the sum: the payload means nothing
  ERAR_REPAIR = 5,          // the answer: as all-gather, but ranks that have the sum pass it on
  ERAR_ALIVE = 6,           // the process of rank `block` waits: nothing else in it means anything
};

struct erar_frame {
  __u8 eth_destination[6];
  __u8 eth_source[6];
  __u16 eth_type;
  __u8 ip_version_ihl;
  __u8 ip_tos;
  __u16 ip_total_length;
  __u16 ip_id;
  __u16 ip_fragment;
  __u8 ip_ttl;
  __u8 ip_protocol;
  __u16 ip_checksum;
  __u16 ip_source[2];
  __u16 ip_destination[2];
  __u16 udp_source;
  __u16 udp_destination;
  __u16 udp_length;
  __u16 udp_checksum;  // 0: not used (RFC 768); the payload changes at every hop
  __u8 type;
  __u8 hop;             // links that the frame has travelled when it arrives, 1 .. 2N-2
  __u16 block;          // the rank that started it
  __u16 job;
  __u32 segment;        // counted from the operation's first
  __u32 operation;
  __u32 token;          // the job's secret
  __u16 payload_bytes;  // multiple of ERAR_CHUNK_BYTES
  __u16 magic;
  __u64 checksum;       // erar_wire_checksum(), little-endian as the payload's words are
};

#define ERAR_CHECK_OFFSET(field, offset) \
  ERAR_STATIC_ASSERT(__builtin_offsetof(struct erar_frame, field) == (offset), #field)
ERAR_STATIC_ASSERT(sizeof(struct erar_frame) == ERAR_HEADER_BYTES, "frame header size");
ERAR_CHECK_OFFSET(ip_version_ihl, 14);
ERAR_CHECK_OFFSET(ip_checksum, 24);
ERAR_CHECK_OFFSET(udp_source, 34);
ERAR_CHECK_OFFSET(udp_length, 38);
ERAR_CHECK_OFFSET(type, 42);
ERAR_CHECK_OFFSET(segment, 48);
ERAR_CHECK_OFFSET(operation, 52);
ERAR_CHECK_OFFSET(token, 56);
ERAR_CHECK_OFFSET(magic, 62);
ERAR_CHECK_OFFSET(checksum, 64);

// Payload bytes of a full segment for a link's MTU (which counts from the IP header on).
ERAR_INLINE __u32 erar_segment_bytes(__u32 mtu) {
  __u32 frame_bytes = mtu + ERAR_LINK_HEADER_BYTES;
  __u32 bytes;

  if (frame_bytes < ERAR_HEADER_BYTES + ERAR_CHUNK_BYTES) return 0;
  bytes = (frame_bytes - ERAR_HEADER_BYTES) / ERAR_CHUNK_BYTES * ERAR_CHUNK_BYTES;
  return bytes < ERAR_MAX_SEGMENT_BYTES ? bytes : ERAR_MAX_SEGMENT_BYTES;
}

// RFC 1071 over an IPv4 header of five words whose checksum field is 0; result in wire order.
ERAR_INLINE __u16 erar_ip_checksum_fold(__u32 sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (__u16)~sum;
}

#endif
