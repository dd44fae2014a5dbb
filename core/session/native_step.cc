// NativeStep: the packet step's hooks over plain pointers.
#include "core/session/native_step.h"

#include <cstring>

#include "core/protocol/lanes.h"
#include "core/protocol/packet.h"
#include "core/protocol/start.h"

struct erar_env {
  erar::NativeMemory* memory;
  erar::NativeFrame* frame;
};

namespace {

const erar_config* erar_env_config(erar_env* env) { return env->memory->config; }

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
  erar::NativeFrame& frame = *env->frame;
  if (frame_bytes > frame.size) return -1;
  frame.size = frame_bytes;
  return 0;
}

// As bpf_xdp_load_bytes() and bpf_xdp_store_bytes(): an error when the payload is not all there.
int erar_env_load(erar_env* env, __u8* to, __u32 bytes) {
  if (env->frame->size < std::size_t{ERAR_HEADER_BYTES} + bytes) return -1;
  std::memcpy(to, env->frame->data + ERAR_HEADER_BYTES, bytes);
  return 0;
}

int erar_env_save(erar_env* env, const __u8* from, __u32 bytes) {
  if (env->frame->size < std::size_t{ERAR_HEADER_BYTES} + bytes) return -1;
  std::memcpy(env->frame->data + ERAR_HEADER_BYTES, from, bytes);
  return 0;
}

__u32 erar_env_combine(erar_env* env, const erar_packet* packet, __u32 index, __u32 chunks) {
  const erar_operation* operation = erar_env_operation(env, packet->operation % ERAR_SLOTS);
  const __u8* share = erar_env_segment(env, index);
  if (share == nullptr) return 0;
  return erar_combine_payload(&operation->combine, erar_env_data(env) + ERAR_HEADER_BYTES,
                              erar_env_data_end(env), share, chunks, ERAR_MAX_CHUNKS);
}

__u64 erar_env_sum_words(erar_env* env, __u32 chunks) {
  return erar_sum_words(erar_env_data(env) + ERAR_HEADER_BYTES, erar_env_data_end(env), chunks,
                        ERAR_MAX_CHUNKS);
}

__u32 erar_env_cpu(erar_env*) { return 0; }

__u64* erar_env_mark(erar_env* env) { return &env->memory->mark->operation; }

__u64* erar_env_heard(erar_env* env, __u32 rank) {
  return rank < ERAR_MAX_RANKS ? &env->memory->heard[rank] : nullptr;
}

void erar_env_count(erar_env* env, __u32 counter, __u64 value) {
  env->memory->counters[counter] += value;
}

void erar_env_complete(erar_env* env, erar_operation*) { ++*env->memory->completions; }

}  // namespace

#include "core/protocol/step.h"

namespace erar {

namespace {

void write_full_frame(const NativeMemory& memory, NativeFrame& frame, std::uint32_t operation) {
  frame.size = std::size_t{ERAR_HEADER_BYTES} + memory.config->segment_bytes;
  erar_write_kick(reinterpret_cast<erar_frame*>(frame.data), memory.config, operation);
}

}  // namespace

Verdict native_step(NativeMemory& memory, NativeFrame& frame, bool from_process) {
  erar_env env{&memory, &frame};
  return static_cast<Verdict>(erar_step(&env, from_process ? 1 : 0));
}

Verdict native_kick(NativeMemory& memory, NativeFrame& frame, std::uint32_t operation) {
  write_full_frame(memory, frame, operation);
  return native_step(memory, frame, true);
}

Verdict native_resend(NativeMemory& memory, NativeFrame& frame, std::uint32_t operation,
                      std::uint32_t block, std::uint32_t segment) {
  write_full_frame(memory, frame, operation);
  erar_env env{&memory, &frame};
  erar_packet packet{};
  packet.block = block;
  packet.segment = segment;
  packet.operation = operation;
  return static_cast<Verdict>(
      erar_resend(&env, erar_env_operation(&env, operation % ERAR_SLOTS), &packet));
}

Verdict native_alive(NativeMemory& memory, NativeFrame& frame) {
  write_full_frame(memory, frame, 0);
  erar_env env{&memory, &frame};
  return static_cast<Verdict>(erar_show_life(&env));
}

}  // namespace erar
