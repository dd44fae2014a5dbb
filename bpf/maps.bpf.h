// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The XDP program's maps and constants, and the packet step's hooks over them.
#ifndef ERAR_BPF_MAPS_H
#define ERAR_BPF_MAPS_H

#include "bpf/config.h"
#include "core/protocol/lanes.h"
#include "core/protocol/packet.h"

// Written by the loader before the program is verified, so every field is a known constant there.
const volatile struct erar_config erar_settings;

// Sizes marked "loader" are set before loading.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);                      // loader: arena_segments
  __uint(key_size, 4);
  __uint(value_size, ERAR_MAX_SEGMENT_BYTES);  // loader: segment_bytes
} arena SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);  // loader: arena_segments
  __type(key, __u32);
  __type(value, __u64);
} states SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, ERAR_SLOTS);
  __type(key, __u32);
  __type(value, struct erar_operation);
} operations SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, ERAR_SLOTS *ERAR_PARK_PLACES);
  __uint(key_size, 4);
  __uint(value_size, ERAR_MAX_SEGMENT_BYTES);  // loader: segment_bytes
} parked_payloads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, ERAR_SLOTS *ERAR_PARK_PLACES);
  __type(key, __u32);
  __type(value, struct erar_parked);
} parking SEC(".maps");

// One of each CPU: which operation a step works for there.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);  // loader: possible CPUs
  __type(key, __u32);
  __type(value, struct erar_mark);
} marks SEC(".maps");

// Signs of life, by rank. Elements of array maps are eight bytes apart at least.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, ERAR_MAX_RANKS);
  __type(key, __u32);
  __type(value, __u64);
} heard SEC(".maps");

struct erar_counters {
  __u64 values[ERAR_COUNTERS];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct erar_counters);
} counters SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, ERAR_DOORBELL_RING_BYTES);
} doorbell SEC(".maps");

struct erar_env {
  struct xdp_md *context;
  struct erar_counters *counters;  // this CPU's, looked up once per packet
};

static __always_inline const struct erar_config *erar_env_config(struct erar_env *env) {
  const struct erar_config *config = (const struct erar_config *)&erar_settings;

  (void)env;
  // Hides from the compiler that the object is a constant of zeros in this file; the verifier, which
  // sees what the loader wrote, still knows every field.
  asm volatile("" : "+r"(config));
  return config;
}

static __always_inline struct erar_operation *erar_env_operation(struct erar_env *env, __u32 slot) {
  (void)env;
  return bpf_map_lookup_elem(&operations, &slot);
}

static __always_inline __u8 *erar_env_segment(struct erar_env *env, __u32 index) {
  (void)env;
  return bpf_map_lookup_elem(&arena, &index);
}

static __always_inline __u64 *erar_env_state(struct erar_env *env, __u32 index) {
  (void)env;
  return bpf_map_lookup_elem(&states, &index);
}

static __always_inline __u8 *erar_env_parked_payload(struct erar_env *env,
                                                     __u32 place) {
  (void)env;
  return bpf_map_lookup_elem(&parked_payloads, &place);
}

static __always_inline struct erar_parked *erar_env_parked(struct erar_env *env, __u32 place) {
  (void)env;
  return bpf_map_lookup_elem(&parking, &place);
}

static __always_inline __u8 *erar_env_data(struct erar_env *env) {
  return (__u8 *)(long)env->context->data;
}

static __always_inline __u8 *erar_env_data_end(struct erar_env *env) {
  return (__u8 *)(long)env->context->data_end;
}

static __always_inline int erar_env_resize(struct erar_env *env, __u32 frame_bytes) {
  __s32 change = (__s32)(frame_bytes - (__u32)(env->context->data_end - env->context->data));

  return change == 0 ? 0 : (int)bpf_xdp_adjust_tail(env->context, change);
}

// A length that the verifier believes: tested here, on the very register that the helper gets, since
// of copies that the compiler made it knows nothing.
static __always_inline int erar_is_payload_length(__u64 *bytes) {
  asm volatile("" : "+r"(*bytes));
  return *bytes != 0 && *bytes <= ERAR_MAX_SEGMENT_BYTES && *bytes <= erar_settings.segment_bytes;
}

static __always_inline int erar_env_load(struct erar_env *env, __u8 *to, __u32 bytes) {
  __u64 length = bytes;

  if (!erar_is_payload_length(&length)) return -1;
  return (int)bpf_xdp_load_bytes(env->context, ERAR_HEADER_BYTES, to, (__u32)length);
}

static __always_inline int erar_env_save(struct erar_env *env, const __u8 *from, __u32 bytes) {
  __u64 length = bytes;

  if (!erar_is_payload_length(&length)) return -1;
  return (int)bpf_xdp_store_bytes(env->context, ERAR_HEADER_BYTES, (void *)from, (__u32)length);
}

// Global functions: the verifier looks at each once, whoever calls it.
#define ERAR_MAX_CHUNKS_HERE (erar_settings.segment_bytes / ERAR_CHUNK_BYTES)

__noinline __u32 erar_combine_rare(struct xdp_md *context, __u32 slot, __u32 index, __u32 chunks) {
  const struct erar_operation *operation = bpf_map_lookup_elem(&operations, &slot);
  const __u8 *share = bpf_map_lookup_elem(&arena, &index);
  __u8 *data = (__u8 *)(long)context->data;

  if (!operation || !share) return 0;
  return erar_combine_payload(&operation->combine, data + ERAR_HEADER_BYTES,
                              (const __u8 *)(long)context->data_end, share, chunks,
                              ERAR_MAX_CHUNKS_HERE);
}

__noinline __u64 erar_sum_payload_words(struct xdp_md *context, __u32 chunks) {
  const __u8 *data = (const __u8 *)(long)context->data;

  return erar_sum_words(data + ERAR_HEADER_BYTES, (const __u8 *)(long)context->data_end, chunks,
                        ERAR_MAX_CHUNKS_HERE);
}

static __always_inline __u32 erar_env_combine(struct erar_env *env, const struct erar_packet *packet,
                                              __u32 index, __u32 chunks) {
  return erar_combine_rare(env->context, packet->operation % ERAR_SLOTS, index, chunks);
}

static __always_inline __u64 erar_env_sum_words(struct erar_env *env, __u32 chunks) {
  return erar_sum_payload_words(env->context, chunks);
}

static __always_inline __u32 erar_env_cpu(struct erar_env *env) {
  (void)env;
  return bpf_get_smp_processor_id();
}

static __always_inline __u64 *erar_env_mark(struct erar_env *env) {
  __u32 cpu = bpf_get_smp_processor_id();
  struct erar_mark *mark = bpf_map_lookup_elem(&marks, &cpu);

  (void)env;
  return mark ? &mark->operation : 0;
}

static __always_inline __u64 *erar_env_heard(struct erar_env *env, __u32 rank) {
  (void)env;
  return bpf_map_lookup_elem(&heard, &rank);
}

static __always_inline void erar_env_count(struct erar_env *env, __u32 counter, __u64 value) {
  if (counter < ERAR_COUNTERS) env->counters->values[counter] += value;
}

// `done` was written before `waiting` is read here, and the process writes `waiting` before it reads
// `done`: it either sees the one or gets the other.
static __always_inline void erar_env_complete(struct erar_env *env,
                                              struct erar_operation *operation) {
  struct erar_doorbell ring = {.operation = operation->number};

  (void)env;
  if (ERAR_READ_ONCE(operation->waiting))
    bpf_ringbuf_output(&doorbell, &ring, sizeof(ring), BPF_RB_FORCE_WAKEUP);
}

#endif
