// SPDX-License-Identifier: GPL-2.0
// MemoryRank: the packet step's hooks over vectors.
#include "sim/ring/memory_rank.h"

#include <cstring>

struct erar_env {
  erar::sim::MemoryRank* rank;
  erar::sim::Frame* frame;
};

namespace erar::sim {

// The one door between the C hooks and the class.
struct MemoryRankAccess {
  static const erar_config* config(const erar_env* env) { return &env->rank->config_; }
  static erar_operation* operation(erar_env* env, __u32 slot) {
    return &env->rank->operations_[slot];
  }
  static __u8* segment(erar_env* env, __u32 index) {
    if (index >= env->rank->config_.arena_segments) return nullptr;
    return bytes_at(env->rank->arena_words_, index, env->rank->config_.segment_bytes);
  }
  static __u64* state(erar_env* env, __u32 index) {
    if (index >= env->rank->config_.arena_segments) return nullptr;
    return reinterpret_cast<__u64*>(&env->rank->states_[index]);
  }
  static __u8* park(erar_env* env, __u32 place) {
    return bytes_at(env->rank->parked_words_, place, env->rank->config_.segment_bytes);
  }
  static __u64* park_tag(erar_env* env, __u32 place) { return &env->rank->park_tags_[place]; }
  static void count(erar_env* env, __u32 counter, __u64 value) {
    env->rank->counters_[counter] += value;
  }
  static void complete(erar_env* env) { env->rank->completions_++; }

  static __u8* bytes_at(std::vector<std::uint64_t>& words, __u32 index, __u32 segment_bytes) {
    return reinterpret_cast<__u8*>(words.data()) + std::size_t{index} * segment_bytes;
  }
};

}  // namespace erar::sim

namespace {

using Access = erar::sim::MemoryRankAccess;

const erar_config* erar_env_config(erar_env* env) { return Access::config(env); }
erar_operation* erar_env_operation(erar_env* env, __u32 slot) {
  return Access::operation(env, slot);
}
__u8* erar_env_segment(erar_env* env, __u32 index) { return Access::segment(env, index); }
__u64* erar_env_state(erar_env* env, __u32 index) { return Access::state(env, index); }
__u8* erar_env_park(erar_env* env, __u32 place) { return Access::park(env, place); }
__u64* erar_env_park_tag(erar_env* env, __u32 place) { return Access::park_tag(env, place); }
__u8* erar_env_data(erar_env* env) { return env->frame->data(); }
__u8* erar_env_data_end(erar_env* env) { return env->frame->data() + env->frame->size(); }

int erar_env_resize(erar_env* env, __u32 frame_bytes) {
  env->frame->resize(frame_bytes);
  return 0;
}

// As bpf_xdp_load_bytes() and bpf_xdp_store_bytes(): an error when the payload is not all there.
int erar_env_load(erar_env* env, __u8* to, __u32 bytes) {
  if (env->frame->size() < std::size_t{ERAR_HEADER_BYTES} + bytes) return -1;
  std::memcpy(to, env->frame->data() + ERAR_HEADER_BYTES, bytes);
  return 0;
}

int erar_env_save(erar_env* env, const __u8* from, __u32 bytes) {
  if (env->frame->size() < std::size_t{ERAR_HEADER_BYTES} + bytes) return -1;
  std::memcpy(env->frame->data() + ERAR_HEADER_BYTES, from, bytes);
  return 0;
}

void erar_env_count(erar_env* env, __u32 counter, __u64 value) {
  Access::count(env, counter, value);
}
void erar_env_complete(erar_env* env, erar_operation*) { Access::complete(env); }

}  // namespace

#include "core/protocol/step.h"

namespace erar::sim {

MemoryRank::MemoryRank(const erar_config& config)
    : config_(config),
      arena_words_(std::size_t{config.arena_segments} * config.segment_bytes / 8),
      states_(config.arena_segments),
      parked_words_(std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES * config.segment_bytes / 8),
      park_tags_(std::size_t{ERAR_SLOTS} * ERAR_PARK_PLACES) {
  for (std::uint32_t i = 0; i < ERAR_SLOTS; i++) operations_[i].number = i;
}

std::uint8_t* MemoryRank::segment(std::uint32_t index) {
  return MemoryRankAccess::bytes_at(arena_words_, index, config_.segment_bytes);
}

std::uint32_t MemoryRank::start(const erar_start& start) {
  const std::uint32_t slot = start.number % ERAR_SLOTS;
  return erar_start_operation(&operations_[slot], &park_tags_[std::size_t{slot} * ERAR_PARK_PLACES],
                              &config_, &start);
}

Verdict MemoryRank::kick(std::uint32_t number, Frame& frame) {
  frame.assign(std::size_t{ERAR_HEADER_BYTES} + config_.segment_bytes, 0);
  erar_write_kick(reinterpret_cast<erar_frame*>(frame.data()), &config_, number);
  return step(frame, true);
}

Verdict MemoryRank::receive(Frame& frame) { return step(frame, false); }

Verdict MemoryRank::step(Frame& frame, bool from_process) {
  erar_env env{this, &frame};
  return static_cast<Verdict>(erar_step(&env, from_process ? 1 : 0));
}

}  // namespace erar::sim
