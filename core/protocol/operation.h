// Operation slots, segment states and the configuration: what process and XDP program share.
#ifndef ERAR_PROTOCOL_OPERATION_H
#define ERAR_PROTOCOL_OPERATION_H

#include "ring.h"
#include "wire.h"

// Operation k lives in slot k mod ERAR_SLOTS. A rank may start operation k+8 only when k is complete on
// every rank, or has been given up: until then it answers from the slot and the memory of k those that lost
// a frame.
#define ERAR_SLOTS 8
#define ERAR_FIRST_OPERATION ERAR_SLOTS /* slots start as if operations 0..7 were long over */

// A frame that reaches a rank before it has started the operation is parked. Only the first `window`
// segments of each block can be under way without that rank's share, so block and offset name a place.
#define ERAR_PARK_PLACES 128
ERAR_STATIC_ASSERT(ERAR_FRAMES_PER_OPERATION <= ERAR_PARK_PLACES &&
                       ERAR_SMALLEST_WINDOW * ERAR_MAX_RANKS <= ERAR_PARK_PLACES,
                   "every early frame has a place");

// How a rank's share is combined into a packet (core/protocol/lanes.h), chosen per operation.
enum erar_loop {
  ERAR_ADD_WORDS = 0,    // 64-bit words: lanes of floats of any width, 64-bit integers
  ERAR_ADD_LANES32 = 1,  // 32-bit integers, each wraps for itself
  ERAR_ADD_LANES = 2,    // integers of the width that lane_high tells, each wraps for itself
  ERAR_MAX_LANES = 3,    // unsigned maxima of lane ^ flip, lanes of the width that lane_high tells
};

struct erar_combine {
  __u32 loop;         // enum erar_loop
  __u16 word_chunks;  // 0 or 1: chunks at the start of each segment that are added as words anyway
  __u16 lane_shift;   // how far a lane's highest bit is above its lowest, where the loop wants it
  __u64 lane_high;    // each lane's highest bit, where the loop wants it
  __u64 flip;         // ERAR_MAX_LANES: 0; for minima all ones; for signed lanes ^ lane_high
};

enum erar_slot_phase {
  ERAR_SLOT_CHANGING = 0,  // the process rewrites the slot; frames of the operation to come are parked
  ERAR_SLOT_OPEN = 1,
  ERAR_SLOT_OVER = 2,  // frames of the operation are refused
};

// One operation on one rank. The process fills the slot, then sets `open`; from then on the program
// counts in it, and the process writes unpark_count (before it kicks) and `waiting` only. Lives in a map that the process has mapped.
struct erar_operation {
  union {
    struct {
      __u32 number;
      __u32 open;  // enum erar_slot_phase
    };
    __u64 phase;  // both, written at once: a late frame must not see the one's old and the other's new
  };
  __u32 first_segment;  // of the buffer, in the arena
  __u32 segments;       // of the buffer, T
  __u32 last_bytes;     // payload bytes of segment T-1
  __u32 own_begin;      // this rank's block
  __u32 own_count;
  __u32 unpark_count;
  __u32 check;          // not 0: frames whose checksum is wrong are dropped
  struct erar_combine combine;
  __u16 unpark[ERAR_PARK_PLACES];      // places claimed by the process, for kick frames to resume
  __u16 unpark_cpu[ERAR_PARK_PLACES];  // and the CPUs that parked them

  __u32 kicks __attribute__((aligned(64)));     // kick frames that have chosen their work
  __u32 own_next __attribute__((aligned(64)));  // own segments started
  __u32 finals __attribute__((aligned(64)));    // segments whose sum is stored here
  __u32 done;                                   // finals == segments
  __u32 waiting;                                // the process sleeps: ring the doorbell when done
} __attribute__((aligned(64)));
ERAR_STATIC_ASSERT(sizeof(struct erar_operation) == 768, "slot size");
ERAR_STATIC_ASSERT(__builtin_offsetof(struct erar_operation, unpark) == 64, "slot's first line");

// Of each segment in the arena: the operation it serves and how far it is. A state of any other
// operation means ERAR_OWN, so nothing is reset between operations.
enum erar_segment_state {
  ERAR_OWN = 0,      // this rank's share
  ERAR_STORING = 1,  // one CPU is writing the sum
  ERAR_FINAL = 2,    // the sum of all ranks
};

ERAR_INLINE __u64 erar_state_of(__u32 operation, enum erar_segment_state state) {
  return (__u64)operation << 2 | (__u64)state;
}

ERAR_INLINE __u64 erar_phase_of(__u32 number, enum erar_slot_phase open) {
  return (__u64)open << 32 | number;
}

// What a segment's state means to an operation that a frame is of.
enum erar_share {
  ERAR_SHARE_OWN,      // this rank's share is there, to be added or stored over
  ERAR_SHARE_STORING,  // another CPU is storing the sum
  ERAR_SHARE_FINAL,    // the sum is there
  ERAR_SHARE_GONE,     // the operation is done here and the memory may serve another
};

// `state` is read before `done`: memory is given to another operation, whose number the state then has,
// only after `done` was set.
ERAR_INLINE enum erar_share erar_share_of(const struct erar_operation *operation, __u32 number,
                                          __u64 state) {
  if (state >> 2 == number)
    return (state & 3) == ERAR_FINAL     ? ERAR_SHARE_FINAL
           : (state & 3) == ERAR_STORING ? ERAR_SHARE_STORING
                                         : ERAR_SHARE_OWN;
  return ERAR_READ_ONCE(operation->done) ? ERAR_SHARE_GONE : ERAR_SHARE_OWN;
}

// A CPU's mark: the operation in whose memory a step works there, or 0. A process that wants the memory
// closes the slot and waits for marks. Both sides first write (the mark here, `open` there) and then
// read the other's, so either the step sees that the slot is closed or the process sees the mark.
struct erar_mark {
  __u64 operation;
} __attribute__((aligned(64)));

ERAR_INLINE __u64 erar_mark_of(__u32 operation) { return (__u64)1 << 32 | operation; }

// Of each parking place: which operation's frame lies there, its length and the CPU that parked it (0
// when free), the frame's checksum less its header's part, and where the frame belongs. A place belongs to
// whoever has changed its tag: a step that lays a frame down, then the process that opens the operation,
// then the kick that resumes the frame.
struct erar_parked {
  __u64 tag;
  __u64 checksum;
  __u32 block;
  __u32 segment;
  __u64 reserved;
};

ERAR_INLINE __u64 erar_park_tag(__u32 operation, __u32 payload_bytes, __u32 cpu) {
  return (__u64)operation << 32 | (__u64)(cpu & 0xffff) << 16 | payload_bytes;
}

// In place of the CPU: a step is laying the frame down; a kick is to resume it.
#define ERAR_PARK_FILLING 0xfffe
#define ERAR_PARK_TAKEN 0xffff

ERAR_INLINE __u32 erar_park_tag_operation(__u64 tag) { return (__u32)(tag >> 32); }
ERAR_INLINE __u32 erar_park_tag_cpu(__u64 tag) { return (__u32)(tag >> 16) & 0xffff; }

// Whether a frame of the operation may be laid down: nothing is there, or what is left of one that is over.
ERAR_INLINE int erar_park_is_free(__u64 tag, __u32 operation) {
  return tag == 0 || ((__s32)(erar_park_tag_operation(tag) - operation) < 0 &&
                      erar_park_tag_cpu(tag) != ERAR_PARK_FILLING);
}

// Constant while the program is loaded. `link` is the first 40 bytes of a full frame to the next rank.
struct erar_config {
  __u64 link[5];
  __u32 link_checksum_base;  // sum over the IPv4 header less total length and checksum
  __u32 rank;
  __u32 ranks;
  __u32 window;
  __u32 segment_bytes;
  __u32 arena_segments;
  __u32 token;
  __u16 job;
  __u16 reserved;
  __u32 tx_ifindex;
  __u32 reserved2;
};
ERAR_STATIC_ASSERT(sizeof(struct erar_config) == 80, "config size");

enum erar_counter {
  ERAR_COUNT_PACKETS = 0,   // eRAR frames that arrived
  ERAR_COUNT_BYTES,         // their payload
  ERAR_COUNT_KICKS,         // kick frames
  ERAR_COUNT_ADDS,          // segments combined
  ERAR_COUNT_STORED,        // sums stored
  ERAR_COUNT_FORWARDED,     // frames sent on
  ERAR_COUNT_RECYCLED,      // frames refilled with a new segment
  ERAR_COUNT_RETIRED,       // frames dropped because their work was done
  ERAR_COUNT_PARKED,        // frames that came before the rank had started
  ERAR_COUNT_UNPARKED,      // and were resumed
  ERAR_COUNT_RESENT,        // own segments that the process started again
  ERAR_COUNT_REQUESTED,     // segments that the process asked for
  ERAR_COUNT_LOST,          // segments that were overdue for the first time, be it that a rank was late
  ERAR_COUNT_ANSWERED,      // sums sent again because somebody lacked them
  ERAR_COUNT_ALIVE,         // signs of life of other ranks' processes
  ERAR_COUNT_FOREIGN,       // passed to the stack
  ERAR_DROP_SHORT,          // truncated eRAR frame
  ERAR_DROP_MALFORMED,      // lengths, magic or version wrong
  ERAR_DROP_JOB,            // job or token of somebody else
  ERAR_DROP_MISROUTED,      // type, block and hop do not end at this rank
  ERAR_DROP_STALE,          // operation is over
  ERAR_DROP_EARLY,          // too early: no parking place, or none is free
  ERAR_DROP_RANGE,          // segment outside its block or of wrong length
  ERAR_DROP_DUPLICATE,      // sum is here already, or another CPU is storing it
  ERAR_DROP_UNANSWERED,     // request for a sum that does not exist yet
  ERAR_DROP_CHECKSUM,       // payload or header is not what was sent
  ERAR_DROP_KICK,           // kick frame from the wire, or for an operation that is over
  ERAR_DROP_INTERNAL,       // a helper refused
  ERAR_COUNTERS
};

// Byte length that segment `segment` of an operation must have.
ERAR_INLINE __u32 erar_expected_bytes(const struct erar_operation *operation, __u32 segment,
                                      __u32 segment_bytes) {
  return segment + 1 == operation->segments ? operation->last_bytes : segment_bytes;
}

#endif
