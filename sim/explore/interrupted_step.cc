// SPDX-License-Identifier: BSD-2-Clause
// InterruptedStep: the packet step's hooks over plain pointers, each of them a point to interrupt
// at.
#include "sim/explore/interrupted_step.h"

#include <cstring>

#include "core/protocol/lanes.h"
#include "core/protocol/packet.h"
#include "core/protocol/start.h"

struct erar_env {
  erar::NativeMemory* memory;
  erar::NativeFrame* frame;
  erar::sim::Interruption* interruption;
};

namespace {

const erar_config* erar_env_config(erar_env* env) {
  env->interruption->pass();
  return env->memory->config;
}

erar_operation* erar_env_operation(erar_env* env, __u32 slot) {
  return &env->memory->operations[slot];
}

__u8* erar_env_segment(erar_env* env, __u32 index) {
  const erar_config& config = *env->memory->config;
  if (index >= config.arena_segments) return nullptr;
  return env->memory->arena + std::size_t{index} * config.segment_bytes;
}

__u64* erar_env_state(erar_env* env, __u32 index) {
  return index < env->memory->config->arena_segments ? &env->memory->states[index] : nullptr;
}

__u8* erar_env_parked_payload(erar_env* env, __u32 place) {
  return env->memory->parked_payloads + std::size_t{place} * env->memory->config->segment_bytes;
}

erar_parked* erar_env_parked(erar_env* env, __u32 place) { return &env->memory->parking[place]; }

__u8* erar_env_data(erar_env* env) { return env->frame->data; }
__u8* erar_env_data_end(erar_env* env) { return env->frame->data + env->frame->size; }

int erar_env_resize(erar_env* env, __u32 frame_bytes) {
  env->interruption->pass();
  if (frame_bytes > env->frame->size) return -1;
  env->frame->size = frame_bytes;
  return 0;
}

int copy_in_halves(erar_env* env, __u8* to, const __u8* from, __u32 bytes) {
  if (env->frame->size < std::size_t{ERAR_HEADER_BYTES} + bytes) return -1;
  env->interruption->pass();
  std::memcpy(to, from, bytes / 2);
  env->interruption->pass();
  std::memcpy(to + bytes / 2, from + bytes / 2, bytes - bytes / 2);
  env->interruption->pass();
  return 0;
}

int erar_env_load(erar_env* env, __u8* to, __u32 bytes) {
  return copy_in_halves(env, to, env->frame->data + ERAR_HEADER_BYTES, bytes);
}

int erar_env_save(erar_env* env, const __u8* from, __u32 bytes) {
  return copy_in_halves(env, env->frame->data + ERAR_HEADER_BYTES, from, bytes);
}

__u32 erar_env_combine(erar_env* env, const erar_packet* packet, __u32 index, __u32 chunks) {
  const erar_operation* operation = erar_env_operation(env, packet->operation % ERAR_SLOTS);
  const __u8* share = erar_env_segment(env, index);
  if (share == nullptr) return 0;
  __u32 done = 0;
  for (; done < chunks; done++) {
    env->interruption->pass();
    const std::size_t at = std::size_t{done} * ERAR_CHUNK_BYTES;
    if (erar_combine_payload(&operation->combine, erar_env_data(env) + ERAR_HEADER_BYTES + at,
                             erar_env_data_end(env), share + at, 1, 1) != 1)
      break;
  }
  env->interruption->pass();
  return done;
}

__u64 erar_env_sum_words(erar_env* env, __u32 chunks) {
  env->interruption->pass();
  return erar_sum_words(erar_env_data(env) + ERAR_HEADER_BYTES, erar_env_data_end(env), chunks,
                        ERAR_MAX_CHUNKS);
}

__u32 erar_env_cpu(erar_env*) { return 0; }

__u64* erar_env_mark(erar_env* env) { return &env->memory->mark->operation; }

__u64* erar_env_heard(erar_env* env, __u32 rank) { return &env->memory->heard[rank]; }

void erar_env_count(erar_env* env, __u32 counter, __u64 value) {
  env->interruption->pass();
  env->memory->counters[counter] += value;
}

void erar_env_complete(erar_env* env, erar_operation*) {
  env->interruption->pass();
  ++*env->memory->completions;
}

}  // namespace

#include "core/protocol/step.h"

namespace erar::sim {

Verdict interrupted_step(NativeMemory& memory, NativeFrame& frame, Interruption& interruption) {
  erar_env env{&memory, &frame, &interruption};
  return static_cast<Verdict>(erar_step(&env, 0));
}

Verdict interrupted_resend(NativeMemory& memory, NativeFrame& frame, std::uint32_t operation,
                           std::uint32_t block, std::uint32_t segment, Interruption& interruption) {
  frame.size = std::size_t{ERAR_HEADER_BYTES} + memory.config->segment_bytes;
  erar_write_kick(reinterpret_cast<erar_frame*>(frame.data), memory.config, operation);
  erar_env env{&memory, &frame, &interruption};
  erar_packet packet{};
  packet.block = block;
  packet.segment = segment;
  packet.operation = operation;
  return static_cast<Verdict>(
      erar_resend(&env, &memory.operations[operation % ERAR_SLOTS], &packet));
}

}  // namespace erar::sim
