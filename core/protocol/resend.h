// What a waiting process sends, and how a step meets its signs of life. Part of the packet step.
#ifndef ERAR_PROTOCOL_RESEND_H
#define ERAR_PROTOCOL_RESEND_H

#include "frame.h"

// What a process does about a segment whose sum does not come: its own is started again, any other asked
// for. The frame has room for a whole segment. The turn rank's sum comes only by the origin's doing.
ERAR_INLINE enum erar_verdict erar_resend(struct erar_env *env, struct erar_operation *operation,
                                          struct erar_packet *packet) {
  const struct erar_config *config = erar_env_config(env);
  __u32 index = operation->first_segment + packet->segment;
  const __u8 *share = erar_env_segment(env, index);
  const __u64 *state = erar_env_state(env, index);

  packet->type = packet->block == config->rank ? ERAR_REDUCE_SCATTER : ERAR_REQUEST;
  packet->hop = erar_links_from(packet->block, config->rank, config->ranks) + 1;
  packet->payload_bytes = erar_expected_bytes(operation, packet->segment, config->segment_bytes);
  packet->checksum = 0;
  if (packet->hop > erar_turn_hop(config->ranks)) return ERAR_DROP;
  if (!share || !state || !erar_is_in_range(config, operation, packet))
    return erar_drop(env, ERAR_DROP_INTERNAL);
  if (packet->type == ERAR_REQUEST) {
    if (erar_env_resize(env, ERAR_HEADER_BYTES + packet->payload_bytes))
      return erar_drop(env, ERAR_DROP_INTERNAL);
  } else if (!erar_take_segment(env, packet, share)) {
    return ERAR_DROP;
  }
  // What was taken may have been half the share and half the sum.
  if (erar_share_of(operation, packet->operation, ERAR_READ_ONCE(*state)) != ERAR_SHARE_OWN)
    return ERAR_DROP;
  erar_env_count(env, packet->type == ERAR_REQUEST ? ERAR_COUNT_REQUESTED : ERAR_COUNT_RESENT, 1);
  return erar_send(env, packet);
}

// A process that waits says so round the whole ring, up to itself; every rank counts what it hears of each.
ERAR_INLINE enum erar_verdict erar_show_life(struct erar_env *env) {
  struct erar_packet packet = {ERAR_ALIVE, 1, erar_env_config(env)->rank, 0, 0, ERAR_CHUNK_BYTES, 0};

  if (erar_env_resize(env, ERAR_HEADER_BYTES + packet.payload_bytes))
    return erar_drop(env, ERAR_DROP_INTERNAL);
  return erar_send(env, &packet);
}

ERAR_INLINE enum erar_verdict erar_hear(struct erar_env *env, struct erar_packet *packet) {
  __u64 *heard = erar_env_heard(env, packet->block);

  if (!heard) return erar_drop(env, ERAR_DROP_INTERNAL);
  if (packet->checksum != 0) return erar_drop(env, ERAR_DROP_CHECKSUM);
  __sync_fetch_and_add(heard, 1);
  erar_env_count(env, ERAR_COUNT_ALIVE, 1);
  if (packet->hop == erar_env_config(env)->ranks) return ERAR_DROP;
  packet->hop++;
  return erar_send(env, packet);
}

#endif
