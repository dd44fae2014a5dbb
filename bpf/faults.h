// What the fault boxes and their host side share: settings, rules, counters, and the decisions themselves.
#ifndef ERAR_BPF_FAULTS_H
#define ERAR_BPF_FAULTS_H

#include "core/protocol/wire.h"

// A frame enters a box by port a, where the sender is, or by port b. Everything is kept per way.
enum erar_fault_way { ERAR_FROM_A, ERAR_FROM_B, ERAR_FAULT_WAYS };

#define ERAR_FAULT_MAX_FRAME_BYTES 3520 /* of a veth with XDP: MTU 3506 and the link header */
#define ERAR_FAULT_RULES 8
#define ERAR_HOLD_PLACES 16 /* a power of two: the place of a held frame is its due number modulo this */
#define ERAR_MAX_HOLD_FRAMES (ERAR_HOLD_PLACES - 1)

// A frame of this type (local experimental, IEEE 802) lends its buffer to one held frame.
#define ERAR_TICK_ETHERNET_TYPE 0x88b5
#define ERAR_TICK_BYTES 64

#define ERAR_CERTAIN (1ULL << 32) /* chances are 32-bit fixed point: this is 1 */

// Constant of a loaded program.
struct erar_box_place {
  __u32 box;  // its number
  __u32 ifindex_a;
};

struct erar_fault_settings {
  __u64 seed;
  __u64 drop;  // chances, 0 .. ERAR_CERTAIN; this one that a burst begins
  __u64 duplicate;
  __u64 hold;
  __u64 corrupt_payload;
  __u64 corrupt_header;
  __u64 truncate;
  __u32 burst_frames;               // that are dropped in a row, 1 or more
  __u32 hold_frames;                // a held frame is released after 1 .. this many others
  __u32 subject[ERAR_FAULT_WAYS];   // 0: frames of this way pass untouched
  __u32 rules;                      // how many rules are in force
  __u32 reserved;
};
ERAR_STATIC_ASSERT(sizeof(struct erar_fault_settings) == 80, "fault settings size");

enum erar_fault_action { ERAR_RULE_DROP = 1, ERAR_RULE_DUPLICATE = 2 };

// Which fields of a rule an eRAR frame must agree with.
#define ERAR_MATCH_TYPE 1
#define ERAR_MATCH_HOP 2
#define ERAR_MATCH_BLOCK 4
#define ERAR_MATCH_SEGMENT 8
#define ERAR_MATCH_OPERATION 16

struct erar_fault_rule {
  __u32 match;       // ERAR_MATCH_*
  __u32 action;      // enum erar_fault_action
  __u32 first_many;  // the action is for this many matching frames, those after them pass
  __u32 type;
  __u32 hop;
  __u32 block;
  __u32 segment;
  __u32 operation;
  __u64 matches;     // frames that have matched so far
};
ERAR_STATIC_ASSERT(sizeof(struct erar_fault_rule) == 40, "fault rule size");

struct erar_fault_rules {
  struct erar_fault_rule rule[ERAR_FAULT_RULES];
};

enum erar_fault_counter {
  ERAR_FAULT_FRAMES,      // that faults could have met
  ERAR_FAULT_UNTOUCHED,   // not IPv4, or of a way that is not subject
  ERAR_FAULT_DROPPED,
  ERAR_FAULT_DUPLICATED,
  ERAR_FAULT_REORDERED,   // held back
  ERAR_FAULT_RELEASED,    // of those, the ones that are on their way again
  ERAR_FAULT_CORRUPTED,   // a bit behind the headers
  ERAR_FAULT_HEADER_CORRUPTED,
  ERAR_FAULT_TRUNCATED,
  ERAR_FAULT_RULE_HITS,   // drops and duplicates that a rule asked for; in the numbers above, too
  ERAR_FAULT_COUNTERS,
};

// One way's frame counter and where its bursts end. `places` are the states of what is held: see
// erar_place_state().
struct erar_fault_flow {
  __u64 frames;
  __u64 burst_end;  // frames below this number are dropped
  __u64 places[ERAR_HOLD_PLACES];
};

struct erar_held_frame {
  __u32 bytes;
  __u32 reserved;
  __u8 frame[ERAR_FAULT_MAX_FRAME_BYTES];
};

// A place is free (0) or has a phase and the number of the frame that releases what is in it. One
// word, so that compare-and-swap tells one frame in a place from the next.
enum erar_place_phase { ERAR_PLACE_FREE, ERAR_PLACE_FILLING, ERAR_PLACE_HELD, ERAR_PLACE_LEAVING };

ERAR_INLINE __u64 erar_place_state(__u64 due, enum erar_place_phase phase) {
  return due << 2 | (__u64)phase;
}
ERAR_INLINE __u32 erar_place_phase_of(__u64 state) { return (__u32)state & 3; }
ERAR_INLINE __u64 erar_place_due(__u64 state) { return state >> 2; }

// splitmix64, as core/mix64.h, which C cannot read.
ERAR_INLINE __u64 erar_fault_mix(__u64 x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// What becomes of one frame. Independent of each other; a dropped frame meets no other fault.
#define ERAR_FATE_DROP 1
#define ERAR_FATE_DUPLICATE 2
#define ERAR_FATE_HOLD 4
#define ERAR_FATE_CORRUPT_PAYLOAD 8
#define ERAR_FATE_CORRUPT_HEADER 16
#define ERAR_FATE_TRUNCATE 32

struct erar_fault_fate {
  __u32 faults;  // ERAR_FATE_*
  __u32 reserved;
  __u64 word;    // random, for where and how much
};

ERAR_INLINE __u32 erar_fault_chance(__u64 word, __u32 fault, __u64 chance) {
  if (chance == 0) return 0;
  return erar_fault_mix(word + fault) >> 32 < chance ? fault : 0;
}

// The fate of frame `number` of a way of a box: nothing but these and the settings decide.
ERAR_INLINE struct erar_fault_fate erar_fault_decide(const struct erar_fault_settings *settings,
                                                     __u32 box, __u32 way, __u64 number) {
  struct erar_fault_fate fate = {0, 0, 0};
  __u64 place = erar_fault_mix(settings->seed ^ erar_fault_mix(2 * (__u64)box + way));

  fate.word = erar_fault_mix(place + number);
  fate.faults = erar_fault_chance(fate.word, ERAR_FATE_DROP, settings->drop) |
                erar_fault_chance(fate.word, ERAR_FATE_DUPLICATE, settings->duplicate) |
                erar_fault_chance(fate.word, ERAR_FATE_HOLD, settings->hold) |
                erar_fault_chance(fate.word, ERAR_FATE_CORRUPT_PAYLOAD, settings->corrupt_payload) |
                erar_fault_chance(fate.word, ERAR_FATE_CORRUPT_HEADER, settings->corrupt_header) |
                erar_fault_chance(fate.word, ERAR_FATE_TRUNCATE, settings->truncate);
  return fate;
}

#endif
