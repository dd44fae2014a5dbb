// Ring arithmetic: which block a segment belongs to, where it starts, turns and ends.
//
// A buffer of T segments is cut into N blocks, block b starts at rank b. A frame of block b that has
// travelled h links is at rank (b + h) mod N. After N-1 links every rank has added its share: that rank
// turns the frame round as all-gather. After 2N-2 links every rank has the sum: the frame ends at rank
// b-2, which fills it with the next segment of its own block. Every rank ends one block and starts one.
#ifndef ERAR_PROTOCOL_RING_H
#define ERAR_PROTOCOL_RING_H

#include "base.h"

#define ERAR_MAX_RANKS 64

// First segment of a block. Blocks differ by one segment at most; with T < N some are empty.
ERAR_INLINE __u32 erar_block_begin(__u32 segments, __u32 ranks, __u32 block) {
  return (__u32)((__u64)segments * block / ranks);
}

ERAR_INLINE __u32 erar_block_count(__u32 segments, __u32 ranks, __u32 block) {
  return erar_block_begin(segments, ranks, block + 1) - erar_block_begin(segments, ranks, block);
}

ERAR_INLINE __u32 erar_turn_hop(__u32 ranks) { return ranks - 1; }
ERAR_INLINE __u32 erar_last_hop(__u32 ranks) { return 2 * ranks - 2; }

// The rank at which a frame of `block` arrives after `hop` links, hop <= 2N-2.
ERAR_INLINE __u32 erar_receiver(__u32 block, __u32 hop, __u32 ranks) {
  __u32 rank = block + hop;

  if (rank >= ranks) rank -= ranks;
  if (rank >= ranks) rank -= ranks;
  return rank;
}

// How many links from one rank to another, 0 .. N-1.
ERAR_INLINE __u32 erar_links_from(__u32 from, __u32 to, __u32 ranks) {
  return to >= from ? to - from : to + ranks - from;
}

// How many frames of an operation each rank may have under way: 64 in all, which is as fast as more on
// links without delay and leaves the cache to the data, but two each at least: the one frame of an
// operation that may be short is not recycled, and a second makes up for it (see erar_start_own()). A
// veth queue holds 256 frames and drops without a word what exceeds them; two operations fit.
#define ERAR_FRAMES_PER_OPERATION 64
#define ERAR_SMALLEST_WINDOW 2
#define ERAR_LARGEST_WINDOW 128 /* with as many parked frames, one batch of a live-frame test run */
ERAR_INLINE __u32 erar_window(__u32 ranks) {
  __u32 window = ERAR_FRAMES_PER_OPERATION / ranks;

  return window < ERAR_SMALLEST_WINDOW ? ERAR_SMALLEST_WINDOW : window;
}

#endif
