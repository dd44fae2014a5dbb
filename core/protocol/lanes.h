// Lane arithmetic: how a rank's own segment is combined into a packet's payload, in place.
//
// A 64-bit word holds lanes of 16, 32 or 64 bits. Carry-safe lanes (core/numeric) need one 64-bit add
// per word whatever their width; lanes that may wrap are added one by one, as C's unsigned integers.
// Loops go by chunks of 64 bytes: eight words unrolled are as fast as a full unrolling and small.
#ifndef ERAR_PROTOCOL_LANES_H
#define ERAR_PROTOCOL_LANES_H

#include "operation.h"


#ifdef __clang__
#define ERAR_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ERAR_UNROLL _Pragma("GCC unroll 16")
#endif

ERAR_INLINE void erar_add_words(erar_word *to, const erar_word *from) {
  ERAR_UNROLL
  for (int i = 0; i < ERAR_CHUNK_BYTES / 8; i++) to[i] += from[i];
}

ERAR_INLINE void erar_add_lanes32(erar_lane32 *to, const erar_lane32 *from) {
  ERAR_UNROLL
  for (int i = 0; i < ERAR_CHUNK_BYTES / 4; i++) to[i] += from[i];
}

// Lane by lane without branches: bit 15 of (a | 8000) - b says a >= b, since both are below 2^15.
ERAR_INLINE void erar_max_lanes16(erar_word *to, const erar_word *from) {
  ERAR_UNROLL
  for (int i = 0; i < ERAR_CHUNK_BYTES / 8; i++) {
    __u64 high = 0x8000800080008000ULL;
    __u64 a = to[i], b = from[i];
    __u64 greater = ((a | high) - b) & high;
    __u64 take_a = greater - (greater >> 15);

    to[i] = (a & take_a) | (b & ~take_a);
  }
}

// One loop per way, chosen once per packet. `end` is one past the last readable byte behind `to`: the
// test costs one compare per chunk and is what proves the access to the BPF verifier. Returns the
// chunks done, equal to `chunks` unless the packet was shorter.
#define ERAR_COMBINE_LOOP(function, type)                                    \
  for (; done < chunks && done < max_chunks; done++) {                       \
    if (to + ERAR_CHUNK_BYTES > end) break;                                  \
    function((type *)(void *)to, (const type *)(const void *)(from + done * ERAR_CHUNK_BYTES)); \
    to += ERAR_CHUNK_BYTES;                                                  \
  }

ERAR_INLINE __u32 erar_combine_payload(__u32 combine, __u8 *to, const __u8 *end, const __u8 *from,
                                       __u32 chunks, __u32 max_chunks) {
  __u32 done = 0;

  switch (combine) {
    case ERAR_ADD_WORDS:
      ERAR_COMBINE_LOOP(erar_add_words, erar_word)
      break;
    case ERAR_ADD_LANES32:
      ERAR_COMBINE_LOOP(erar_add_lanes32, erar_lane32)
      break;
    case ERAR_MAX_LANES16:
      ERAR_COMBINE_LOOP(erar_max_lanes16, erar_word)
      break;
    default:
      break;
  }
  return done;
}

#endif
