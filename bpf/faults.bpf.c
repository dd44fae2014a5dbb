// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fault box: forwards frames between two devices and drops, doubles, holds back, damages or cuts some.
//
// XDP cannot make frames, but a redirect to all entries of a DEVMAP clones, and each entry's own
// program may change what leaves. So a frame is doubled by a map that has the other device twice; and
// one that was held back leaves in the second clone of a later frame, whose content erar_fault_egress
// replaces.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/faults.h"

#define ETHERNET_HEADER_BYTES 14
#define ETHERNET_IPV4 0x0800
#define IPV4_HEADER_END 34
#define IPV4_NO_OPTIONS 0x45
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define TCP_LENGTH_OFFSET 46 /* its high nibble: words of the TCP header */
#define TCP_MINIMUM_END 54
#define TAG_MAGIC 0xfa017a65
#define STUCK_AFTER_FRAMES 4096 /* no clone takes that long: its place may be taken */

const volatile struct erar_box_place erar_place;

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct erar_fault_settings);
} fault_settings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct erar_fault_rules);
} fault_rules SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, ERAR_FAULT_WAYS);
  __type(key, __u32);
  __type(value, struct erar_fault_flow);
} fault_flows SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, ERAR_FAULT_WAYS *ERAR_HOLD_PLACES);
  __type(key, __u32);
  __type(value, struct erar_held_frame);
} fault_held SEC(".maps");

struct erar_fault_counters {
  __u64 values[ERAR_FAULT_COUNTERS];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct erar_fault_counters);
} fault_counters SEC(".maps");

// The devices by the way that leads to them; and each twice.
struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __uint(max_entries, ERAR_FAULT_WAYS);
  __type(key, __u32);
  __type(value, struct bpf_devmap_val);
} fault_ports SEC(".maps");

struct erar_twice {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, struct bpf_devmap_val);
};
struct erar_twice twice_from_a SEC(".maps");
struct erar_twice twice_from_b SEC(".maps");

// What a frame carries before its data while it and the clone beside it are on the way to the egress
// program: which held frame the second of the two is to become.
struct erar_tag {
  __u32 magic;
  __u32 place;
  __u64 due;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct erar_tag);
} last_tag SEC(".maps");

struct erar_fault_env {
  struct xdp_md *context;
  const struct erar_fault_settings *settings;
  struct erar_fault_flow *flow;
  struct erar_fault_counters *counters;
  __u32 way;
};

static __always_inline void count(const struct erar_fault_env *env, enum erar_fault_counter which) {
  env->counters->values[which]++;
}

static __always_inline __u32 frame_bytes(const struct xdp_md *context) {
  return (__u32)bpf_xdp_get_buff_len((struct xdp_md *)context);
}

// A length that the verifier believes: tested on the very register that the helper gets, and by two
// comparisons that the compiler must not make one of.
static __always_inline int is_frame_length(__u64 *bytes) {
  asm volatile("" : "+r"(*bytes));
  if (*bytes > ERAR_FAULT_MAX_FRAME_BYTES) return 0;
  asm volatile("" : "+r"(*bytes));
  return *bytes >= ETHERNET_HEADER_BYTES;
}

static __always_inline __u64 *place_of(struct erar_fault_flow *flow, __u64 due) {
  return &flow->places[due & (ERAR_HOLD_PLACES - 1)];
}

static __always_inline __u32 held_index(__u32 way, __u64 due) {
  return way * ERAR_HOLD_PLACES + ((__u32)due & (ERAR_HOLD_PLACES - 1));
}

// Copies the frame into the place of frame number `due`. 0 when it is there.
static __always_inline int hold(const struct erar_fault_env *env, __u64 due) {
  const __u32 index = held_index(env->way, due);
  struct erar_held_frame *held = bpf_map_lookup_elem(&fault_held, &index);
  __u64 *place = place_of(env->flow, due);
  const __u64 filling = erar_place_state(due, ERAR_PLACE_FILLING);
  __u64 old = ERAR_READ_ONCE(*place);
  __u64 bytes = frame_bytes(env->context);

  if (!held || !is_frame_length(&bytes)) return -1;
  if (erar_place_phase_of(old) != ERAR_PLACE_FREE) {
    if (erar_place_phase_of(old) != ERAR_PLACE_LEAVING) return -1;
    if (erar_place_due(old) + STUCK_AFTER_FRAMES > due) return -1;
  }
  if (__sync_val_compare_and_swap(place, old, filling) != old) return -1;
  held->bytes = (__u32)bytes;
  if (bpf_xdp_load_bytes(env->context, 0, held->frame, (__u32)bytes) != 0) {
    __sync_val_compare_and_swap(place, filling, 0);
    return -1;
  }
  __sync_val_compare_and_swap(place, filling, erar_place_state(due, ERAR_PLACE_HELD));
  return 0;
}

// Claims what is due with frame `number`. 0 when there is something.
static __always_inline int claim(const struct erar_fault_env *env, __u64 number) {
  __u64 *place = place_of(env->flow, number);
  const __u64 old = ERAR_READ_ONCE(*place);

  if (erar_place_phase_of(old) != ERAR_PLACE_HELD || erar_place_due(old) > number) return -1;
  if (__sync_val_compare_and_swap(
          place, old, erar_place_state(erar_place_due(old), ERAR_PLACE_LEAVING)) != old)
    return -1;
  return 0;
}

// Makes the frame the held one. 0 when it is; else the frame is as it was.
static __always_inline int become(struct xdp_md *context, __u32 index) {
  const struct erar_held_frame *held = bpf_map_lookup_elem(&fault_held, &index);
  __u64 bytes;

  if (!held) return -1;
  bytes = held->bytes;
  if (!is_frame_length(&bytes)) return -1;
  if (bpf_xdp_adjust_tail(context, (int)bytes - (int)frame_bytes(context)) != 0) return -1;
  bytes = held->bytes;
  if (!is_frame_length(&bytes)) return -1;
  return (int)bpf_xdp_store_bytes(context, 0, (void *)held->frame, (__u32)bytes);
}

// The frame's buffer goes on with the held frame in it. What does not fit stays for another frame.
static __always_inline int send_held_instead(const struct erar_fault_env *env, __u64 *place,
                                             __u32 index) {
  const __u64 leaving = ERAR_READ_ONCE(*place);

  if (become(env->context, index) != 0) {
    __sync_val_compare_and_swap(place, leaving,
                                erar_place_state(erar_place_due(leaving), ERAR_PLACE_HELD));
    return XDP_DROP;
  }
  __sync_val_compare_and_swap(place, leaving, 0);
  count(env, ERAR_FAULT_RELEASED);
  return (int)bpf_redirect_map(&fault_ports, env->way, XDP_DROP);
}

static __always_inline int send_twice(const struct erar_fault_env *env) {
  if (env->way == ERAR_FROM_A) return (int)bpf_redirect_map(&twice_from_a, 0, BPF_F_BROADCAST);
  return (int)bpf_redirect_map(&twice_from_b, 0, BPF_F_BROADCAST);
}

// The frame, and what is held in the place of frame `number` behind it.
static __always_inline int send_with_held(const struct erar_fault_env *env, __u64 number) {
  const __u64 state = ERAR_READ_ONCE(*place_of(env->flow, number));
  struct erar_tag *tag;

  if (bpf_xdp_adjust_meta(env->context, -(int)sizeof(*tag)) == 0) {
    tag = (void *)(long)env->context->data_meta;
    if ((void *)(tag + 1) <= (void *)(long)env->context->data) {
      tag->magic = TAG_MAGIC;
      tag->place = held_index(env->way, number);
      tag->due = erar_place_due(state);
      return send_twice(env);
    }
  }
  __sync_val_compare_and_swap(place_of(env->flow, number), state,
                              erar_place_state(erar_place_due(state), ERAR_PLACE_HELD));
  return (int)bpf_redirect_map(&fault_ports, env->way, XDP_DROP);
}

static __always_inline int flip_bit(struct xdp_md *context, __u32 first, __u32 end, __u64 word) {
  __u32 offset, bit;
  __u8 byte;

  if (end <= first) return -1;
  offset = first + (__u32)(word >> 8) % (end - first);
  bit = (__u32)word & 7;
  if (bpf_xdp_load_bytes(context, offset, &byte, 1) != 0) return -1;
  byte ^= (__u8)(1 << bit);
  return (int)bpf_xdp_store_bytes(context, offset, &byte, 1);
}

// Where the payload begins: behind eRAR's header, or TCP's, or UDP's; else behind IPv4's.
static __always_inline __u32 headers_bytes(struct xdp_md *context) {
  const struct erar_frame *frame = (void *)(long)context->data;
  const char *end = (void *)(long)context->data_end;
  __u8 length;

  if ((const char *)frame + ERAR_UDP_HEADER_END > end) return IPV4_HEADER_END;
  if (frame->ip_version_ihl != IPV4_NO_OPTIONS) return IPV4_HEADER_END;
  if (frame->ip_protocol == PROTOCOL_UDP)
    return frame->udp_destination == ERAR_BE16(ERAR_UDP_PORT) ? ERAR_HEADER_BYTES
                                                              : ERAR_UDP_HEADER_END;
  if (frame->ip_protocol != PROTOCOL_TCP) return IPV4_HEADER_END;
  if (bpf_xdp_load_bytes(context, TCP_LENGTH_OFFSET, &length, 1) != 0) return TCP_MINIMUM_END;
  return IPV4_HEADER_END + (length >> 4) * 4;
}

static __always_inline void damage(const struct erar_fault_env *env,
                                   const struct erar_fault_fate *fate) {
  const __u32 bytes = frame_bytes(env->context);
  const __u32 headers = headers_bytes(env->context);

  if (fate->faults & ERAR_FATE_CORRUPT_PAYLOAD &&
      flip_bit(env->context, headers, bytes, fate->word) == 0)
    count(env, ERAR_FAULT_CORRUPTED);
  if (fate->faults & ERAR_FATE_CORRUPT_HEADER &&
      flip_bit(env->context, 0, headers < bytes ? headers : bytes, fate->word >> 16) == 0)
    count(env, ERAR_FAULT_HEADER_CORRUPTED);
  if (fate->faults & ERAR_FATE_TRUNCATE && bytes > ETHERNET_HEADER_BYTES) {
    const __u32 cut = 1 + (__u32)(fate->word >> 32) % (bytes - ETHERNET_HEADER_BYTES);
    if (bpf_xdp_adjust_tail(env->context, -(int)cut) == 0) count(env, ERAR_FAULT_TRUNCATED);
  }
}

// All ones when the field counts. Without branches: the verifier follows every path of every rule.
static __always_inline __u32 mask_of(__u32 match, __u32 field) { return 0 - !!(match & field); }

static __always_inline int agrees(const struct erar_fault_rule *rule,
                                  const struct erar_frame *frame) {
  const __u32 match = rule->match;
  __u32 difference = mask_of(match, ERAR_MATCH_TYPE) & (rule->type ^ frame->type);

  difference |= mask_of(match, ERAR_MATCH_HOP) & (rule->hop ^ frame->hop);
  difference |= mask_of(match, ERAR_MATCH_BLOCK) & (rule->block ^ ERAR_BE16(frame->block));
  difference |= mask_of(match, ERAR_MATCH_SEGMENT) & (rule->segment ^ ERAR_BE32(frame->segment));
  difference |=
      mask_of(match, ERAR_MATCH_OPERATION) & (rule->operation ^ ERAR_BE32(frame->operation));
  return difference == 0;
}

// The action of the first rule that is for this frame; 0: none.
static __always_inline __u32 rule_action(const struct erar_fault_env *env) {
  const struct erar_frame *frame = (void *)(long)env->context->data;
  struct erar_fault_rules *rules;
  __u32 zero = 0, i;

  if (env->settings->rules == 0) return 0;
  if ((const char *)(frame + 1) > (const char *)(long)env->context->data_end) return 0;
  if (frame->ip_version_ihl != IPV4_NO_OPTIONS || frame->ip_protocol != PROTOCOL_UDP) return 0;
  if (frame->udp_destination != ERAR_BE16(ERAR_UDP_PORT)) return 0;
  rules = bpf_map_lookup_elem(&fault_rules, &zero);
  if (!rules) return 0;
  for (i = 0; i < ERAR_FAULT_RULES; i++) {
    struct erar_fault_rule *rule = &rules->rule[i];
    if (i >= env->settings->rules) return 0;
    if (agrees(rule, frame) && __sync_fetch_and_add(&rule->matches, 1) < rule->first_many)
      return rule->action;
  }
  return 0;
}

// A tick takes out the held frame that is due first.
static __always_inline int serve_tick(const struct erar_fault_env *env) {
  __u64 best = ~0ULL;
  __u32 i;

  for (i = 0; i < ERAR_HOLD_PLACES; i++) {
    const __u64 state = ERAR_READ_ONCE(env->flow->places[i]);
    if (erar_place_phase_of(state) == ERAR_PLACE_HELD && erar_place_due(state) < best)
      best = erar_place_due(state);
  }
  if (best == ~0ULL || claim(env, best) != 0) return XDP_DROP;
  return send_held_instead(env, place_of(env->flow, best), held_index(env->way, best));
}

static __always_inline int is_dropped(const struct erar_fault_env *env, __u64 number, __u32 faults) {
  if (number < ERAR_READ_ONCE(env->flow->burst_end)) return 1;
  if (!(faults & ERAR_FATE_DROP)) return 0;
  env->flow->burst_end = number + env->settings->burst_frames;
  return 1;
}

static __always_inline int forward_with_faults(const struct erar_fault_env *env) {
  const __u64 number = __sync_fetch_and_add(&env->flow->frames, 1);
  const struct erar_fault_fate fate =
      erar_fault_decide(env->settings, erar_place.box, env->way, number);
  const __u32 action = rule_action(env);
  const int releases = claim(env, number) == 0;
  int goes_on = 1;

  count(env, ERAR_FAULT_FRAMES);
  if (action != 0) count(env, ERAR_FAULT_RULE_HITS);
  if (is_dropped(env, number, fate.faults) || action == ERAR_RULE_DROP) {
    count(env, ERAR_FAULT_DROPPED);
    goes_on = 0;
  } else {
    damage(env, &fate);
    if (fate.faults & ERAR_FATE_HOLD && env->settings->hold_frames != 0 &&
        hold(env, number + 1 + (__u32)(fate.word >> 20) % env->settings->hold_frames) == 0) {
      count(env, ERAR_FAULT_REORDERED);
      goes_on = 0;
    }
  }
  if (releases)
    return goes_on ? send_with_held(env, number)
                   : send_held_instead(env, place_of(env->flow, number),
                                       held_index(env->way, number));
  if (!goes_on) return XDP_DROP;
  if (fate.faults & ERAR_FATE_DUPLICATE || action == ERAR_RULE_DUPLICATE) {
    count(env, ERAR_FAULT_DUPLICATED);
    return send_twice(env);
  }
  return (int)bpf_redirect_map(&fault_ports, env->way, XDP_DROP);
}

SEC("xdp")
int erar_faults(struct xdp_md *context) {
  const struct erar_frame *frame = (void *)(long)context->data;
  const char *end = (void *)(long)context->data_end;
  struct erar_fault_env env = {.context = context};
  __u32 zero = 0;

  env.way = context->ingress_ifindex == erar_place.ifindex_a ? ERAR_FROM_A : ERAR_FROM_B;
  env.settings = bpf_map_lookup_elem(&fault_settings, &zero);
  env.flow = bpf_map_lookup_elem(&fault_flows, &env.way);
  env.counters = bpf_map_lookup_elem(&fault_counters, &zero);
  if (!env.settings || !env.flow || !env.counters) return XDP_ABORTED;  // cannot be

  if ((const char *)frame + ETHERNET_HEADER_BYTES > end) return XDP_DROP;
  if (frame->eth_type == ERAR_BE16(ERAR_TICK_ETHERNET_TYPE)) return serve_tick(&env);
  if (frame->eth_type == ERAR_BE16(ETHERNET_IPV4) && env.settings->subject[env.way] &&
      (const char *)frame + IPV4_HEADER_END <= end)
    return forward_with_faults(&env);
  count(&env, ERAR_FAULT_UNTOUCHED);
  return (int)bpf_redirect_map(&fault_ports, env.way, XDP_DROP);
}

// Runs for every frame that leaves the box: a device sends what waits for it by one program.
SEC("xdp/devmap")
int erar_fault_egress(struct xdp_md *context) {
  const struct erar_tag *carried = (void *)(long)context->data_meta;
  struct erar_fault_counters *counters;
  struct erar_fault_flow *flow;
  struct erar_tag tag, *last;
  __u32 zero = 0, way;
  __u64 *place;

  if ((void *)(carried + 1) > (void *)(long)context->data) return XDP_PASS;
  if (carried->magic != TAG_MAGIC) return XDP_PASS;
  tag = *carried;
  if (bpf_xdp_adjust_meta(context, sizeof(tag)) != 0) return XDP_PASS;
  last = bpf_map_lookup_elem(&last_tag, &zero);
  if (!last) return XDP_PASS;
  if (last->magic != TAG_MAGIC || last->place != tag.place || last->due != tag.due) {
    *last = tag;  // the first of the two: the frame itself
    return XDP_PASS;
  }
  last->magic = 0;
  way = tag.place / ERAR_HOLD_PLACES;
  flow = bpf_map_lookup_elem(&fault_flows, &way);
  counters = bpf_map_lookup_elem(&fault_counters, &zero);
  if (!flow || !counters) return XDP_DROP;
  place = place_of(flow, tag.due);
  if (ERAR_READ_ONCE(*place) != erar_place_state(tag.due, ERAR_PLACE_LEAVING)) return XDP_DROP;
  if (become(context, tag.place) != 0) {
    __sync_val_compare_and_swap(place, erar_place_state(tag.due, ERAR_PLACE_LEAVING),
                                erar_place_state(tag.due, ERAR_PLACE_HELD));
    return XDP_DROP;
  }
  __sync_val_compare_and_swap(place, erar_place_state(tag.due, ERAR_PLACE_LEAVING), 0);
  counters->values[ERAR_FAULT_RELEASED]++;
  return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
