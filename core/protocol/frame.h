// The frame in hand: which are ours, what their headers say, and writing them. Part of the packet step.
#ifndef ERAR_PROTOCOL_FRAME_H
#define ERAR_PROTOCOL_FRAME_H

#include "lanes.h"
#include "operation.h"
#include "packet.h"

enum erar_verdict {
  ERAR_PASS,     // not ours: to the network stack
  ERAR_DROP,     // counted
  ERAR_FORWARD,  // to the successor, headers written
};

ERAR_INLINE enum erar_verdict erar_drop(struct erar_env *env, __u32 counter) {
  erar_env_count(env, counter, 1);
  return ERAR_DROP;
}

ERAR_INLINE int erar_is_foreign(const struct erar_frame *frame) {
  return frame->eth_type != ERAR_BE16(0x0800) || frame->ip_version_ihl != 0x45 ||
         frame->ip_protocol != 17 || (frame->ip_fragment & ERAR_BE16(0x3fff)) != 0 ||
         frame->udp_destination != ERAR_BE16(ERAR_UDP_PORT);
}

// 1 when the frame is of this job and well-formed; else *verdict says what becomes of it.
ERAR_INLINE int erar_parse(struct erar_env *env, struct erar_packet *packet,
                           enum erar_verdict *verdict) {
  const struct erar_config *config = erar_env_config(env);
  __u8 *data = erar_env_data(env);
  __u8 *end = erar_env_data_end(env);
  const struct erar_frame *frame = (const struct erar_frame *)(const void *)data;

  *verdict = ERAR_PASS;
  if (data + ERAR_UDP_HEADER_END > end || erar_is_foreign(frame)) {
    erar_env_count(env, ERAR_COUNT_FOREIGN, 1);
    return 0;
  }
  if (data + ERAR_HEADER_BYTES > end) {
    *verdict = erar_drop(env, ERAR_DROP_SHORT);
    return 0;
  }
  packet->type = frame->type;
  packet->hop = frame->hop;
  packet->block = ERAR_BE16(frame->block);
  packet->segment = ERAR_BE32(frame->segment);
  packet->operation = ERAR_BE32(frame->operation);
  packet->payload_bytes = ERAR_BE16(frame->payload_bytes);
  packet->checksum = erar_payload_checksum(packet, frame->checksum);
  if (frame->magic != ERAR_BE16(ERAR_MAGIC)) {
    *verdict = erar_drop(env, ERAR_DROP_MALFORMED);
    return 0;
  }
  if (frame->job != ERAR_BE16(config->job) || frame->token != ERAR_BE32(config->token)) {
    *verdict = erar_drop(env, ERAR_DROP_JOB);
    return 0;
  }
  if (packet->type == ERAR_KICK) return 1;
  if (packet->payload_bytes == 0 || packet->payload_bytes % ERAR_CHUNK_BYTES != 0 ||
      packet->payload_bytes > config->segment_bytes ||
      frame->ip_total_length != ERAR_BE16(packet->payload_bytes + ERAR_IP_OVERHEAD_BYTES) ||
      frame->udp_length != ERAR_BE16(packet->payload_bytes + ERAR_UDP_OVERHEAD_BYTES)) {
    *verdict = erar_drop(env, ERAR_DROP_MALFORMED);
    return 0;
  }
  if ((__u64)(end - data) < ERAR_HEADER_BYTES + packet->payload_bytes) {
    *verdict = erar_drop(env, ERAR_DROP_SHORT);
    return 0;
  }
  return 1;
}

// Whether block, hop and type can be: the frame must have ended its links at this very rank.
ERAR_INLINE int erar_is_routed_here(const struct erar_config *config,
                                    const struct erar_packet *packet) {
  __u32 turn = erar_turn_hop(config->ranks);

  if (packet->block >= config->ranks || packet->hop == 0 ||
      packet->hop > erar_last_hop(config->ranks))
    return 0;
  switch (packet->type) {
    case ERAR_REDUCE_SCATTER:
    case ERAR_REQUEST:
      if (packet->hop > turn) return 0;
      break;
    case ERAR_ALIVE:
      if (packet->hop > config->ranks) return 0;
      break;
    case ERAR_ALL_GATHER:
    case ERAR_REPAIR:
      if (packet->hop <= turn) return 0;
      break;
    default:
      return 0;
  }
  return erar_receiver(packet->block, packet->hop, config->ranks) == config->rank;
}

// Writes the headers for the link to the successor; the frame already has its final size.
ERAR_INLINE enum erar_verdict erar_send(struct erar_env *env, const struct erar_packet *packet) {
  const struct erar_config *config = erar_env_config(env);
  __u8 *data = erar_env_data(env);
  struct erar_frame *frame = (struct erar_frame *)(void *)data;
  erar_word *words = (erar_word *)(void *)data;

  if (data + ERAR_HEADER_BYTES > erar_env_data_end(env))
    return erar_drop(env, ERAR_DROP_INTERNAL);
  ERAR_UNROLL
  for (int i = 0; i < 5; i++) words[i] = config->link[i];
  if (packet->payload_bytes != config->segment_bytes) {
    __u16 total = ERAR_BE16(packet->payload_bytes + ERAR_IP_OVERHEAD_BYTES);

    frame->ip_total_length = total;
    frame->ip_checksum = erar_ip_checksum_fold(config->link_checksum_base + total);
    frame->udp_length = ERAR_BE16(packet->payload_bytes + ERAR_UDP_OVERHEAD_BYTES);
  }
  frame->udp_checksum = 0;
  frame->type = (__u8)packet->type;
  frame->hop = (__u8)packet->hop;
  frame->block = ERAR_BE16(packet->block);
  frame->job = ERAR_BE16(config->job);
  frame->segment = ERAR_BE32(packet->segment);
  frame->operation = ERAR_BE32(packet->operation);
  frame->token = ERAR_BE32(config->token);
  frame->payload_bytes = ERAR_BE16(packet->payload_bytes);
  frame->magic = ERAR_BE16(ERAR_MAGIC);
  frame->checksum = erar_wire_checksum(packet);
  return ERAR_FORWARD;
}

#endif
