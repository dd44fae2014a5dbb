// What a rank's process does to start an operation: fill the slot, open it, claim what came early.
#ifndef ERAR_PROTOCOL_START_H
#define ERAR_PROTOCOL_START_H

#include "operation.h"

struct erar_start {
  __u32 number;         // from ERAR_FIRST_OPERATION on, each once
  __u32 first_segment;  // of the buffer, in the arena
  __u32 segments;       // 0: an operation that only takes its number and is never done
  __u32 last_bytes;     // payload bytes of the last segment, multiple of ERAR_CHUNK_BYTES
  struct erar_combine combine;
  __u32 check;          // not 0: frames whose checksum is wrong are dropped
};

// Opens the operation in its slot and returns how many kick frames are to be injected: one for each
// frame that was parked, and a window of the own block's segments. The arena holds this rank's share
// before the call, and no step is at work on the slot's last operation. parked: the ERAR_PARK_PLACES places of the slot.
ERAR_INLINE __u32 erar_start_operation(struct erar_operation *slot, struct erar_parked *parked,
                                       const struct erar_config *config,
                                       const struct erar_start *start) {
  __u64 taken = erar_park_tag(start->number, 0, ERAR_PARK_TAKEN);
  __u32 unparked = 0;
  __u32 places = config->ranks * config->window < ERAR_PARK_PLACES ? config->ranks * config->window
                                                                   : ERAR_PARK_PLACES;

  __atomic_store_n(&slot->phase, erar_phase_of(start->number, ERAR_SLOT_CHANGING), __ATOMIC_SEQ_CST);
  slot->first_segment = start->first_segment;
  slot->segments = start->segments;
  slot->last_bytes = start->last_bytes;
  slot->combine = start->combine;
  slot->check = start->check;
  slot->own_begin = erar_block_begin(start->segments, config->ranks, config->rank);
  slot->own_count = erar_block_count(start->segments, config->ranks, config->rank);
  slot->kicks = 0;
  slot->own_next = 0;
  slot->finals = 0;
  slot->done = 0;
  slot->waiting = 0;
  slot->unpark_count = 0;
  __atomic_store_n(&slot->phase, erar_phase_of(start->number, ERAR_SLOT_OPEN), __ATOMIC_SEQ_CST);
  for (__u32 place = 0; place < places; place++) {
    __u64 tag = __atomic_load_n(&parked[place].tag, __ATOMIC_SEQ_CST);

    // A step that is still laying a frame down will see that the operation is open, and go on with it.
    if (erar_park_tag_operation(tag) != start->number || erar_park_tag_cpu(tag) >= ERAR_PARK_FILLING)
      continue;
    if (!__atomic_compare_exchange_n(&parked[place].tag, &tag, taken, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
      continue;
    slot->unpark_cpu[unparked] = (__u16)erar_park_tag_cpu(tag);
    slot->unpark[unparked++] = (__u16)place;
  }
  slot->unpark_count = unparked;
  return unparked + (slot->own_count < config->window ? slot->own_count : config->window);
}

// A kick frame's headers: what the process injects into its own program, one frame per start.
ERAR_INLINE void erar_write_kick(struct erar_frame *frame, const struct erar_config *config,
                                 __u32 number) {
  erar_word *words = (erar_word *)(void *)frame;

  for (int i = 0; i < 5; i++) words[i] = config->link[i];
  frame->type = ERAR_KICK;
  frame->job = ERAR_BE16(config->job);
  frame->operation = ERAR_BE32(number);
  frame->token = ERAR_BE32(config->token);
  frame->magic = ERAR_BE16(ERAR_MAGIC);
}

#endif
