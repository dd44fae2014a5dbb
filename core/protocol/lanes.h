// Lane arithmetic: how a rank's own segment is combined into a packet's payload, in place.
//
// A 64-bit word holds lanes of 8, 16, 32 or 64 bits. Carry-safe lanes (core/numeric) need one 64-bit add
// per word whatever their width; lanes that may wrap are added one by one, as C's unsigned integers.
// Loops go by chunks of 64 bytes: eight words unrolled are as fast as a full unrolling and small.
//
// Checksums: a frame carries the sum of its payload's words modulo 2^64. That survives addition: the
// checksum of a sum is the sum of the shares' checksums, less the carries that lanes drop. So each rank
// sums what came, which must be what the frame says, and adds what its own share contributes; both fall
// off while the words are in hand anyway. A sum does not see words that changed places.
#ifndef ERAR_PROTOCOL_LANES_H
#define ERAR_PROTOCOL_LANES_H

#include "operation.h"

// The highest bit of each lane of a word.
#define ERAR_HIGH_OF_LANES8 0x8080808080808080ULL
#define ERAR_HIGH_OF_LANES16 0x8000800080008000ULL
#define ERAR_HIGH_OF_LANES32 0x8000000080000000ULL
#define ERAR_HIGH_OF_LANES64 0x8000000000000000ULL

#ifdef __clang__
#define ERAR_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ERAR_UNROLL _Pragma("GCC unroll 16")
#endif

// Of the chunks done: the sum of the words that came, and what the share added to it.
struct erar_sums {
  __u64 came;
  __u64 added;
};

ERAR_INLINE void erar_add_words(erar_word *to, const erar_word *from, struct erar_sums *sums) {
  ERAR_UNROLL
  for (int i = 0; i < ERAR_CHUNK_BYTES / 8; i++) {
    __u64 word = to[i], share = from[i];

    sums->came += word;
    sums->added += share;
    to[i] = word + share;
  }
}

// Both lanes of a word in one add, and then the carry between them is taken back: where it went in, the
// sum's bit 32 differs from that of the addends.
ERAR_INLINE void erar_add_lanes32(erar_word *to, const erar_word *from, struct erar_sums *sums) {
  ERAR_UNROLL
  for (int i = 0; i < ERAR_CHUNK_BYTES / 8; i++) {
    __u64 word = to[i], share = from[i];
    __u64 sum = word + share;
    __u64 carry = (word ^ share ^ sum) & (1ULL << 32);

    sums->came += word;
    sums->added += share - carry;
    to[i] = sum - carry;
  }
}

// Lanes of any one width, each wraps for itself: all bits but the highest are added as one word, which
// cannot carry into the neighbour, and the highest bits without carry.
ERAR_INLINE __u64 erar_add_lanes_of(__u64 a, __u64 b, __u64 high) {
  return ((a & ~high) + (b & ~high)) ^ ((a ^ b) & high);
}

ERAR_INLINE void erar_add_lanes(erar_word *to, const erar_word *from, __u64 high) {
  ERAR_UNROLL
  for (int i = 0; i < ERAR_CHUNK_BYTES / 8; i++) to[i] = erar_add_lanes_of(to[i], from[i], high);
}

// Lane by lane without branches. Where the highest bits are equal, the highest bit of (a | high) - b,
// which cannot borrow from the neighbour, says whether the rest of a is no less; else a's own does.
ERAR_INLINE void erar_max_lanes(erar_word *to, const erar_word *from, __u64 high, __u64 flip,
                                __u32 shift) {
  ERAR_UNROLL
  for (int i = 0; i < ERAR_CHUNK_BYTES / 8; i++) {
    __u64 a = to[i] ^ flip, b = from[i] ^ flip;
    __u64 rest = (a | high) - (b & ~high);
    __u64 no_less = ((a & ~b) | (~(a ^ b) & rest)) & high;
    __u64 take_a = (no_less << 1) - (no_less >> (shift & 63));  // all bits of the lanes where a is taken

    to[i] = ((a & take_a) | (b & ~take_a)) ^ flip;
  }
}

// One loop per way, chosen once per packet. `end` is one past the last readable byte behind `to`: the
// test costs one compare per chunk and is what proves the access to the BPF verifier. Returns the
// chunks done, equal to `chunks` unless the packet was shorter.
#define ERAR_COMBINE_LOOP(call)                                                   \
  for (; done < chunks && done < max_chunks; done++) {                            \
    const __u8 *share = from + done * ERAR_CHUNK_BYTES;                           \
    if (to + ERAR_CHUNK_BYTES > end) break;                                       \
    call;                                                                         \
    to += ERAR_CHUNK_BYTES;                                                       \
  }
#define ERAR_TO(type) ((type *)(void *)to)
#define ERAR_SHARE(type) ((const type *)(const void *)share)

// The ways that gradients take. The others have a function of their own (see step.h).
ERAR_INLINE int erar_is_common(const struct erar_combine *combine) {
  return !combine->word_chunks &&
         (combine->loop == ERAR_ADD_WORDS || combine->loop == ERAR_ADD_LANES32);
}

ERAR_INLINE __u32 erar_combine_common(__u32 loop, __u8 *to, const __u8 *end, const __u8 *from,
                                      __u32 chunks, __u32 max_chunks, struct erar_sums *sums) {
  __u32 done = 0;

  sums->came = sums->added = 0;
  if (loop == ERAR_ADD_WORDS) {
    ERAR_COMBINE_LOOP(erar_add_words(ERAR_TO(erar_word), ERAR_SHARE(erar_word), sums))
  } else {
    ERAR_COMBINE_LOOP(erar_add_lanes32(ERAR_TO(erar_word), ERAR_SHARE(erar_word), sums))
  }
  return done;
}

// Every way. What the share adds to the checksum is left to the caller: the words' sum has to be made anew.
ERAR_INLINE __u32 erar_combine_payload(const struct erar_combine *combine, __u8 *to,
                                       const __u8 *end, const __u8 *from, __u32 chunks,
                                       __u32 max_chunks) {
  __u64 high = combine->lane_high, flip = combine->flip;
  __u32 shift = combine->lane_shift;
  struct erar_sums unused = {0, 0};
  __u32 done = 0;

  if (combine->word_chunks && chunks && max_chunks) {
    if (to + ERAR_CHUNK_BYTES > end) return 0;
    erar_add_words(ERAR_TO(erar_word), (const erar_word *)(const void *)from, &unused);
    to += ERAR_CHUNK_BYTES;
    done = 1;
  }
  switch (combine->loop) {
    case ERAR_ADD_WORDS:
      ERAR_COMBINE_LOOP(erar_add_words(ERAR_TO(erar_word), ERAR_SHARE(erar_word), &unused))
      break;
    case ERAR_ADD_LANES32:
      ERAR_COMBINE_LOOP(erar_add_lanes32(ERAR_TO(erar_word), ERAR_SHARE(erar_word), &unused))
      break;
    case ERAR_ADD_LANES:
      ERAR_COMBINE_LOOP(erar_add_lanes(ERAR_TO(erar_word), ERAR_SHARE(erar_word), high))
      break;
    case ERAR_MAX_LANES:
      ERAR_COMBINE_LOOP(erar_max_lanes(ERAR_TO(erar_word), ERAR_SHARE(erar_word), high, flip, shift))
      break;
    default:
      return 0;
  }
  return done;
}

// Sum of the words of `chunks` chunks; see ERAR_COMBINE_LOOP about `end` and `max_chunks`.
ERAR_INLINE __u64 erar_sum_words(const __u8 *at, const __u8 *end, __u32 chunks, __u32 max_chunks) {
  __u64 sum = 0;

  for (__u32 done = 0; done < chunks && done < max_chunks; done++) {
    const erar_word *words = (const erar_word *)(const void *)at;

    if (at + ERAR_CHUNK_BYTES > end) break;
    ERAR_UNROLL
    for (int i = 0; i < ERAR_CHUNK_BYTES / 8; i++) sum += words[i];
    at += ERAR_CHUNK_BYTES;
  }
  return sum;
}

#endif
