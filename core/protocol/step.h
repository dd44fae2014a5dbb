// The packet step: a frame arrived at a rank; what changes there, and what leaves.
//
// This is the protocol. It is compiled into the XDP program, the tests, the in-memory ring and the
// ranks' processes; where it runs is hidden behind the erar_env_* functions, which the including file defines
// before it includes this one:
//   const struct erar_config *erar_env_config(struct erar_env *)
//   struct erar_operation *erar_env_operation(struct erar_env *, __u32 slot)         slot < ERAR_SLOTS
//   __u8 *erar_env_segment(struct erar_env *, __u32 index)          NULL when outside the arena
//   __u64 *erar_env_state(struct erar_env *, __u32 index)           NULL when outside the arena
//   __u8 *erar_env_parked_payload(struct erar_env *, __u32 place)             place < SLOTS * PARK_PLACES
//   struct erar_parked *erar_env_parked(struct erar_env *, __u32 place)
//   __u8 *erar_env_data(struct erar_env *), *erar_env_data_end(struct erar_env *)
//   int erar_env_resize(struct erar_env *, __u32 frame_bytes)       to fewer bytes; 0 or an error
//   int erar_env_load(struct erar_env *, __u8 *to, __u32 bytes)     payload -> memory, 0 or an error
//   int erar_env_save(struct erar_env *, const __u8 *from, __u32 bytes)     memory -> payload
//   __u32 erar_env_cpu(struct erar_env *)                           the CPU that runs the step
//   __u64 *erar_env_mark(struct erar_env *)                         that CPU's mark, or NULL
//   __u64 *erar_env_heard(struct erar_env *, __u32 rank)            signs of life of a rank, or NULL
//   __u32 erar_env_combine(struct erar_env *, const struct erar_packet *, __u32 index, __u32 chunks)
//   __u64 erar_env_sum_words(struct erar_env *, __u32 chunks)
//     erar_combine_payload() with the share at `index`, and erar_sum_words() of the frame's payload:
//     functions of their own, because the BPF verifier would otherwise follow every length of one loop
//     into every length of the next
//   void erar_env_count(struct erar_env *, __u32 counter, __u64 value)
//   void erar_env_complete(struct erar_env *, struct erar_operation *)      `done` was just set
// Several CPUs may run the step for one rank at once; two frames never share a segment's turn to store
// (ERAR_STORING is claimed by compare-and-swap), and a rank's own share is only read until then.
//
// Loss: frames that are missing are replaced, nothing is acknowledged. Sums appear along the ring in one
// order only: first at the turn rank b-1, then at b, b+1, ... b-2. So if the origin b lacks its segment's
// sum, every share is still there but perhaps the turn rank's, and b may start the segment again. Any
// other rank that lacks it asks with a request, which travels on to the turn rank as a reduce-scatter
// frame would; the ranks in between lack the sum, too. The turn rank is the only one that answers.
#ifndef ERAR_PROTOCOL_STEP_H
#define ERAR_PROTOCOL_STEP_H

#include "frame.h"
#include "lanes.h"
#include "operation.h"
#include "packet.h"

// The frame takes this rank's segment as its payload.
ERAR_INLINE int erar_take_segment(struct erar_env *env, struct erar_packet *packet,
                                  const __u8 *segment) {
  if (erar_env_resize(env, ERAR_HEADER_BYTES + packet->payload_bytes) ||
      erar_env_save(env, segment, packet->payload_bytes)) {
    erar_env_count(env, ERAR_DROP_INTERNAL, 1);
    return 0;
  }
  packet->checksum = erar_env_sum_words(env, packet->payload_bytes / ERAR_CHUNK_BYTES);
  return 1;
}

// The frame in hand becomes the next segment of this rank's own block, or ends.
//
// A frame is never made longer: its buffer may be no larger than what it carried (an skb of a packet
// socket, a NIC's small buffer). Only the operation's last segment is short, so at most one frame ends
// here unused. Blocks differ by one segment at most and a window has two, so enough others come.
ERAR_INLINE enum erar_verdict erar_start_own(struct erar_env *env, struct erar_operation *operation,
                                             struct erar_packet *packet, __u32 counter) {
  const struct erar_config *config = erar_env_config(env);
  __u64 frame_bytes = (__u64)(erar_env_data_end(env) - erar_env_data(env));
  __u32 own = ERAR_READ_ONCE(operation->own_next);
  const __u8 *share;

  if (frame_bytes < ERAR_HEADER_BYTES + config->segment_bytes)
    return erar_drop(env, ERAR_COUNT_RETIRED);
  // Most ends of frames come when nothing is left to start: spare them the atomic.
  if (own < operation->own_count) own = __sync_fetch_and_add(&operation->own_next, 1);
  if (own >= operation->own_count) return erar_drop(env, ERAR_COUNT_RETIRED);
  packet->type = ERAR_REDUCE_SCATTER;
  packet->hop = 1;
  packet->block = config->rank;
  packet->segment = operation->own_begin + own;
  packet->payload_bytes = erar_expected_bytes(operation, packet->segment, config->segment_bytes);
  share = erar_env_segment(env, operation->first_segment + packet->segment);
  if (!share || packet->payload_bytes == 0 || packet->payload_bytes > config->segment_bytes)
    return erar_drop(env, ERAR_DROP_INTERNAL);
  if (!erar_take_segment(env, packet, share)) return ERAR_DROP;
  erar_env_count(env, counter, 1);
  return erar_send(env, packet);
}

ERAR_INLINE int erar_is_open(const struct erar_operation *operation, __u32 number) {
  return ERAR_READ_ONCE(operation->phase) == erar_phase_of(number, ERAR_SLOT_OPEN);
}

// Early frames lie at block * window + segment mod window: the first `window` segments of a block are
// consecutive, so no two share a place. (Where a larger window makes them, the later of the two is lost.)
ERAR_INLINE __u32 erar_park_place(const struct erar_config *config,
                                  const struct erar_packet *packet) {
  __u32 slot = packet->operation % ERAR_SLOTS;
  __u32 place = packet->block * config->window + packet->segment % config->window;

  return slot * ERAR_PARK_PLACES + (place & (ERAR_PARK_PLACES - 1));
}

ERAR_INLINE void erar_unpark_packet(const struct erar_config *config,
                                    const struct erar_operation *operation,
                                    const struct erar_parked *parked, struct erar_packet *packet) {
  packet->type = ERAR_REDUCE_SCATTER;
  packet->block = parked->block;
  packet->segment = parked->segment;
  packet->hop = erar_links_from(packet->block, config->rank, config->ranks);
  packet->payload_bytes = erar_expected_bytes(operation, packet->segment, config->segment_bytes);
  packet->checksum = parked->checksum;
}

// The operation is not open here yet: lays the frame down where the process finds it when it opens the
// slot. Returns 1 when the slot was opened meanwhile and the frame, still in hand, is ours to go on with.
// Both sides first write (tag here, `open` there) and then read the other's: one of them sees it, and
// the compare-and-swap on the tag lets one of them have it.
ERAR_INLINE int erar_park(struct erar_env *env, struct erar_operation *operation,
                          const struct erar_packet *packet, enum erar_verdict *verdict) {
  __u64 phase = ERAR_READ_ONCE(operation->phase);
  __u32 number = (__u32)phase;
  __u64 tag = erar_park_tag(packet->operation, packet->payload_bytes, erar_env_cpu(env));
  __u64 filling = erar_park_tag(packet->operation, 0, ERAR_PARK_FILLING);
  __u64 was;
  __u32 place = erar_park_place(erar_env_config(env), packet);
  struct erar_parked *parked = erar_env_parked(env, place);
  __u8 *payload_at = erar_env_parked_payload(env, place);

  *verdict = ERAR_DROP;
  if (packet->operation == number ? phase >> 32 == ERAR_SLOT_OVER
                                  : packet->operation != number + ERAR_SLOTS) {
    erar_env_count(
        env, (__s32)(packet->operation - number) <= 0 ? ERAR_DROP_STALE : ERAR_DROP_EARLY, 1);
    return 0;
  }
  if (packet->type != ERAR_REDUCE_SCATTER || !parked || !payload_at) {
    erar_env_count(env, ERAR_DROP_EARLY, 1);
    return 0;
  }
  was = ERAR_READ_ONCE(parked->tag);
  if (!erar_park_is_free(was, packet->operation) ||
      __sync_val_compare_and_swap(&parked->tag, was, filling) != was) {
    erar_env_count(env, ERAR_DROP_EARLY, 1);
    return 0;
  }
  if (erar_env_load(env, payload_at, packet->payload_bytes)) {
    __sync_lock_test_and_set(&parked->tag, 0);
    erar_env_count(env, ERAR_DROP_INTERNAL, 1);
    return 0;
  }
  erar_env_count(env, ERAR_COUNT_PARKED, 1);
  parked->checksum = packet->checksum;
  parked->block = packet->block;
  parked->segment = packet->segment;
  __sync_lock_test_and_set(&parked->tag, tag);
  if (!erar_is_open(operation, packet->operation)) return 0;
  if (__sync_val_compare_and_swap(&parked->tag, tag, 0) != tag) return 0;
  erar_env_count(env, ERAR_COUNT_UNPARKED, 1);
  return 1;
}

// Segment inside its block, and of the length it must have.
ERAR_INLINE int erar_is_in_range(const struct erar_config *config,
                                 const struct erar_operation *operation,
                                 const struct erar_packet *packet) {
  __u32 segments = operation->segments;

  return packet->segment >= erar_block_begin(segments, config->ranks, packet->block) &&
         packet->segment < erar_block_begin(segments, config->ranks, packet->block + 1) &&
         packet->payload_bytes ==
             erar_expected_bytes(operation, packet->segment, config->segment_bytes);
}

ERAR_INLINE int erar_is_damaged(struct erar_env *env, const struct erar_operation *operation,
                                const struct erar_packet *packet) {
  return operation->check &&
         erar_env_sum_words(env, packet->payload_bytes / ERAR_CHUNK_BYTES) != packet->checksum;
}

// Stores the payload, which is the sum of all ranks, in place of this rank's share. 0 when it is there.
ERAR_INLINE int erar_store(struct erar_env *env, struct erar_operation *operation,
                           const struct erar_packet *packet, __u8 *share, __u64 *state) {
  __u64 seen = ERAR_READ_ONCE(*state);

  if (erar_share_of(operation, packet->operation, seen) != ERAR_SHARE_OWN ||
      __sync_val_compare_and_swap(state, seen, erar_state_of(packet->operation, ERAR_STORING)) !=
          seen)
    return 0;
  if (erar_env_load(env, share, packet->payload_bytes)) {
    __sync_lock_test_and_set(state, seen);
    erar_env_count(env, ERAR_DROP_INTERNAL, 1);
    return 0;
  }
  __sync_lock_test_and_set(state, erar_state_of(packet->operation, ERAR_FINAL));
  erar_env_count(env, ERAR_COUNT_STORED, 1);
  if (__sync_fetch_and_add(&operation->finals, 1) + 1 == operation->segments) {
    __sync_lock_test_and_set(&operation->done, 1);
    erar_env_complete(env, operation);
  }
  return 1;
}

// Combines this rank's share into the payload, and into the checksum. 0 when the frame is to be dropped.
ERAR_INLINE int erar_combine_share(struct erar_env *env, const struct erar_operation *operation,
                                   struct erar_packet *packet, const __u8 *share) {
  const struct erar_config *config = erar_env_config(env);
  __u32 chunks = packet->payload_bytes / ERAR_CHUNK_BYTES;
  struct erar_sums sums;
  __u32 done;

  if (erar_is_common(&operation->combine)) {
    done = erar_combine_common(operation->combine.loop, erar_env_data(env) + ERAR_HEADER_BYTES,
                               erar_env_data_end(env), share, chunks,
                               config->segment_bytes / ERAR_CHUNK_BYTES, &sums);
    if (operation->check && sums.came != packet->checksum) {
      erar_env_count(env, ERAR_DROP_CHECKSUM, 1);
      return 0;
    }
    packet->checksum += sums.added;
  } else {
    if (erar_is_damaged(env, operation, packet)) {
      erar_env_count(env, ERAR_DROP_CHECKSUM, 1);
      return 0;
    }
    done = erar_env_combine(env, packet, operation->first_segment + packet->segment, chunks);
    packet->checksum = erar_env_sum_words(env, chunks);
  }
  if (done == chunks) return 1;
  erar_env_count(env, ERAR_DROP_INTERNAL, 1);
  return 0;
}

// The share stays as it is, so the hop may be repeated.
ERAR_INLINE int erar_reduce(struct erar_env *env, struct erar_operation *operation,
                            struct erar_packet *packet, const __u8 *share, const __u64 *state) {
  if (!erar_combine_share(env, operation, packet, share)) return 0;
  // A sum may have been stored over the share while it was being read: then this frame is a duplicate.
  if (erar_share_of(operation, packet->operation, ERAR_READ_ONCE(*state)) != ERAR_SHARE_OWN) {
    erar_env_count(env, ERAR_DROP_DUPLICATE, 1);
    return 0;
  }
  erar_env_count(env, ERAR_COUNT_ADDS, 1);
  return 1;
}

// A frame on its way to the turn rank meets a share that is this rank's own no more. Where the frame has
// come from, the sum is missing or was when it left: the turn rank sends it again. Any other rank that
// has it got it from ranks that all have it, so the frame is late.
ERAR_INLINE enum erar_verdict erar_answer(struct erar_env *env, struct erar_packet *packet,
                                          enum erar_share found, const __u8 *share) {
  if (found != ERAR_SHARE_FINAL || packet->hop != erar_turn_hop(erar_env_config(env)->ranks))
    return erar_drop(env, ERAR_DROP_DUPLICATE);
  if (!erar_take_segment(env, packet, share)) return ERAR_DROP;
  packet->type = packet->type == ERAR_REQUEST ? ERAR_REPAIR : ERAR_ALL_GATHER;
  packet->hop++;
  erar_env_count(env, ERAR_COUNT_ANSWERED, 1);
  return erar_send(env, packet);
}

// A frame of an open operation, in range: reduce-scatter hop, turn, all-gather hop or end.
ERAR_INLINE enum erar_verdict erar_arrive(struct erar_env *env, struct erar_operation *operation,
                                          struct erar_packet *packet) {
  const struct erar_config *config = erar_env_config(env);
  __u32 index = operation->first_segment + packet->segment;
  __u8 *share = erar_env_segment(env, index);
  __u64 *state = erar_env_state(env, index);

  if (!share || !state || packet->payload_bytes == 0 ||
      packet->payload_bytes > config->segment_bytes)
    return erar_drop(env, ERAR_DROP_INTERNAL);
  if (packet->type == ERAR_REDUCE_SCATTER || packet->type == ERAR_REQUEST) {
    enum erar_share found = erar_share_of(operation, packet->operation, ERAR_READ_ONCE(*state));

    if (packet->type == ERAR_REQUEST && packet->checksum != 0)
      return erar_drop(env, ERAR_DROP_CHECKSUM);
    if (found != ERAR_SHARE_OWN) return erar_answer(env, packet, found, share);
    if (packet->type == ERAR_REQUEST) {
      if (packet->hop == erar_turn_hop(config->ranks)) return erar_drop(env, ERAR_DROP_UNANSWERED);
    } else {
      if (!erar_reduce(env, operation, packet, share, state)) return ERAR_DROP;
      if (packet->hop == erar_turn_hop(config->ranks)) packet->type = ERAR_ALL_GATHER;
    }
  } else if (erar_is_damaged(env, operation, packet)) {
    return erar_drop(env, ERAR_DROP_CHECKSUM);
  }
  if (packet->type == ERAR_ALL_GATHER || packet->type == ERAR_REPAIR) {
    int stored = erar_store(env, operation, packet, share, state);
    int last = packet->hop == erar_last_hop(config->ranks);

    if (!stored && (last || packet->type == ERAR_ALL_GATHER))
      return erar_drop(env, ERAR_DROP_DUPLICATE);
    // Each segment is stored once at the end of its way, so one frame ends there and starts another.
    if (last) return erar_start_own(env, operation, packet, ERAR_COUNT_RECYCLED);
  }
  packet->hop++;
  erar_env_count(env, ERAR_COUNT_FORWARDED, 1);
  return erar_send(env, packet);
}

// A kick frame chooses its work: first the frames that waited for this rank, then the own block's.
// Returns 1 when it has become a frame that arrived, 0 when *verdict is final.
ERAR_INLINE int erar_kick(struct erar_env *env, struct erar_operation *operation,
                          struct erar_packet *packet, enum erar_verdict *verdict) {
  const struct erar_config *config = erar_env_config(env);
  __u32 kick = __sync_fetch_and_add(&operation->kicks, 1);
  __u32 place;
  __u64 taken = erar_park_tag(packet->operation, 0, ERAR_PARK_TAKEN);
  const __u8 *payload;
  struct erar_parked *parked;

  erar_env_count(env, ERAR_COUNT_KICKS, 1);
  if (kick >= operation->unpark_count || kick >= ERAR_PARK_PLACES) {
    *verdict = erar_start_own(env, operation, packet, ERAR_COUNT_FORWARDED);
    return 0;
  }
  place = operation->unpark[kick] & (ERAR_PARK_PLACES - 1);
  place += packet->operation % ERAR_SLOTS * ERAR_PARK_PLACES;
  payload = erar_env_parked_payload(env, place);
  parked = erar_env_parked(env, place);
  *verdict = ERAR_DROP;
  if (!payload || !parked) {
    erar_env_count(env, ERAR_DROP_INTERNAL, 1);
    return 0;
  }
  erar_unpark_packet(config, operation, parked, packet);
  if (packet->payload_bytes == 0 || packet->payload_bytes > config->segment_bytes ||
      erar_env_resize(env, ERAR_HEADER_BYTES + packet->payload_bytes) ||
      erar_env_save(env, payload, packet->payload_bytes)) {
    erar_env_count(env, ERAR_DROP_INTERNAL, 1);
    return 0;
  }
  // A kick may be so late that the operation is done and a frame of the next has taken the place: then what
  // was read may be of both.
  if (__sync_val_compare_and_swap(&parked->tag, taken, 0) != taken) {
    erar_env_count(env, ERAR_DROP_KICK, 1);
    return 0;
  }
  erar_env_count(env, ERAR_COUNT_UNPARKED, 1);
  return 1;
}

#include "resend.h"

ERAR_INLINE enum erar_verdict erar_step_in(struct erar_env *env, struct erar_operation *operation,
                                           struct erar_packet *packet, int from_process) {
  const struct erar_config *config = erar_env_config(env);
  enum erar_verdict verdict;

  if (packet->type == ERAR_KICK) {
    if (!from_process || !erar_is_open(operation, packet->operation))
      return erar_drop(env, ERAR_DROP_KICK);
    if (!erar_kick(env, operation, packet, &verdict)) return verdict;
  } else if (!erar_is_open(operation, packet->operation) &&
             !erar_park(env, operation, packet, &verdict)) {
    return verdict;
  }
  if (!erar_is_in_range(config, operation, packet)) return erar_drop(env, ERAR_DROP_RANGE);
  return erar_arrive(env, operation, packet);
}

// `from_process`: the frame was injected by this rank's process, which no frame from a wire can claim.
ERAR_INLINE enum erar_verdict erar_step(struct erar_env *env, int from_process) {
  const struct erar_config *config = erar_env_config(env);
  struct erar_packet packet;
  struct erar_operation *operation;
  enum erar_verdict verdict;
  __u64 *mark;

  if (!erar_parse(env, &packet, &verdict)) return verdict;
  if (packet.type != ERAR_KICK) {
    erar_env_count(env, ERAR_COUNT_PACKETS, 1);
    erar_env_count(env, ERAR_COUNT_BYTES, packet.payload_bytes);
    if (!erar_is_routed_here(config, &packet)) return erar_drop(env, ERAR_DROP_MISROUTED);
    if (packet.type == ERAR_ALIVE) return erar_hear(env, &packet);
  }
  operation = erar_env_operation(env, packet.operation % ERAR_SLOTS);
  mark = erar_env_mark(env);
  if (!operation || !mark) return erar_drop(env, ERAR_DROP_INTERNAL);
  __sync_lock_test_and_set(mark, erar_mark_of(packet.operation));  // a full barrier
  verdict = erar_step_in(env, operation, &packet, from_process);
  ERAR_WRITE_ONCE(*mark, 0);
  return verdict;
}

#endif
